"""Rewrites a loop of two stages so that iterations overlap (T1 to T1).

    for j iter(o): s = dot q, k(j); p = f(s); o = dot p, v(j), o          dot#1 and o of stage 1
    ⇒ if there is an iteration:
        s = dot q, k(0); p = f(s)                                         the prologue
        for j from 1 iter(o, p): s = dot q, k(j); o = dot p, v(j - 1), o  products that run on
            wait for s; p' = f(s); wait for o
        o = dot p, v(last), o                                             the epilogue

What the first stage makes for the second is carried to the next body. In a body products are
asynchronous: each is waited for where it is needed first, all of them at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType, UnitAttr, i32
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.op import build
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.staging import DotWaitOp
from tilewright.schedule.pipeline.addressing import end_of, taken_by
from tilewright.schedule.pipeline.emitter import SIGNED_LESS, UNSIGNED_GREATER, Emitter
from tilewright.schedule.pipeline.stages import StagedLoop

Values = dict[SSAValue, SSAValue]
"""What the values of the old body are in one iteration of it."""


def expand_stages(staged: StagedLoop) -> ForOp:
    """Rewrite a loop; the new one."""
    return _Expander(staged).run()


class _Expander:
    """The rewrite of one loop.

    `kept` is what the first stage gives to its next iteration, `crossing` what it gives to the
    second stage of its own iteration: the new loop carries both.
    """

    def __init__(self, staged: StagedLoop) -> None:
        self.staged = staged
        self.loop = staged.loop
        self.body = staged.loop.body.block
        self.given = list(end_of(self.loop).arguments)
        self.kept = [value for value in dict.fromkeys(self.given) if not self._is_late(value)]
        self.crossing = self._crossing()

    def run(self) -> ForOp:
        """Put the new loop in the place of the old one."""
        loop = self.loop
        if loop.trips().fewest > 0:
            new, results = self._expanded(Emitter(loop, loop))
        else:
            new, results = self._guarded()
        for old, value in zip(loop.results, results, strict=True):
            old.replace_all_uses_with(value)
        erase(loop)
        return new

    def _is_late(self, value: SSAValue) -> bool:
        """Whether the second stage makes a value."""
        return isinstance(value, OpResult) and self.staged.stage.get(value.op) == 1

    def _crossing(self) -> list[SSAValue]:
        """What the second stage takes that it does not make in the same iteration."""
        found: dict[SSAValue, None] = {}
        for op in self.staged.order:
            if self.staged.stage[op] == 1:
                found.update(dict.fromkeys(self._from_before(op)))
        return list(found)

    def _from_before(self, op: Operation) -> list[SSAValue]:
        found: list[SSAValue] = []
        for value in taken_by(op, self.body):
            if isinstance(value, BlockArgument):
                found += [value] if value.block is self.body else []
            elif isinstance(value, OpResult) and value.op.parent is self.body:
                is_free = value.op not in self.staged.stage
                own = [] if self._is_late(value) else [value]
                found += self._from_before(value.op) if is_free else own
        return found

    # --- what stands around the loop ---

    def _guarded(self) -> tuple[ForOp, Sequence[SSAValue]]:
        """All of it under a branch, as there may be no iteration."""
        loop = self.loop
        out = Emitter(loop, loop)
        is_any = out.compare(SIGNED_LESS, loop.lb, loop.ub)
        end = build(YieldOp, location=loop.location)
        other = build(YieldOp, list(loop.iter_args), location=loop.location)
        regions = [Region(Block([end])), Region(Block([other]))]
        types = [result.type for result in loop.results]
        branch = out.insert(build(IfOp, [is_any], types, None, regions, loop.location))
        new, results = self._expanded(Emitter(end, loop))
        end.operands = list(results)
        return new, branch.results

    def _expanded(self, out: Emitter) -> tuple[ForOp, Sequence[SSAValue]]:
        """The prologue, the loop and the epilogue; what the old loop's results are."""
        loop = self.loop
        first: Values = dict(zip(self.body.args, (loop.lb, *loop.iter_args), strict=True))
        self._emit_stage(out, 0, first)
        initial = [self._value(out, v, first) for v in (*self.kept, *self.crossing)]
        new = self._loop(out, initial)
        kept = dict(zip(self.kept, new.results, strict=False))
        last: Values = dict(zip(self.crossing, new.results[len(self.kept) :], strict=True))
        self._emit_stage(out, 1, last)
        return new, [last[v] if self._is_late(v) else kept[v] for v in self.given]

    def _emit_stage(self, out: Emitter, stage: int, values: Values) -> None:
        """One stage of an iteration alone, in the order of a body."""
        for op in self.staged.order:
            if self.staged.stage[op] == stage:
                self._emit(out, op, values)

    def _emit(self, out: Emitter, op: Operation, values: Values) -> Operation:
        """An op of an iteration, with the free ops that it needs."""
        for value in taken_by(op, self.body):
            self._value(out, value, values)
        return out.insert(op.clone(values))

    def _value(self, out: Emitter, value: SSAValue, values: Values) -> SSAValue:
        """What a value is in an iteration; who makes it, if free, is computed for that."""
        if value not in values and isinstance(value, OpResult):
            op = value.op
            if op.parent is self.body and op not in self.staged.stage:
                self._emit(out, op, values)
        return values.get(value, value)

    # --- the loop ---

    def _loop(self, out: Emitter, initial: Sequence[SSAValue]) -> ForOp:
        """The loop over all iterations but the first, each with the second stage of the last."""
        loop = self.loop
        start = out.binary("addi", loop.lb, loop.step)
        if not loop.counts_within():
            rest = out.binary("subi", loop.ub, loop.lb)
            start = out.select(out.compare(UNSIGNED_GREATER, rest, loop.step), start, loop.ub)
        block = Block(arg_types=[loop.lb.type, *(value.type for value in initial)])
        end = build(YieldOp, location=loop.location)
        block.add_op(end)
        operands = [start, loop.ub, loop.step, *initial]
        types = [value.type for value in initial]
        new = build(ForOp, operands, types, None, [Region(block)], loop.location)
        new.attributes = dict(loop.attributes)
        out.insert(new)
        assert isinstance(new, ForOp)
        end.operands = _Body(self, Emitter(end, loop), block).run()
        return new

    def late_carried(self) -> dict[SSAValue, SSAValue]:
        """The carried values that the second stage makes, by the arguments of the old body."""
        pairs = zip(self.body.args[1:], self.given, strict=True)
        return {argument: value for argument, value in pairs if self._is_late(value)}

    def first_carried(self) -> dict[SSAValue, SSAValue]:
        """The carried values that the first stage makes, by the arguments of the old body."""
        pairs = zip(self.body.args[1:], self.given, strict=True)
        return {argument: value for argument, value in pairs if not self._is_late(value)}

    def emit(self, out: Emitter, op: Operation, values: Values) -> Operation:
        """`_emit`, for the body."""
        return self._emit(out, op, values)

    def value(self, out: Emitter, value: SSAValue, values: Values) -> SSAValue:
        """`_value`, for the body."""
        return self._value(out, value, values)


class _Body:
    """The new body: the first stage of an iteration beside the second one of that before.

    `now` has the values of the two iterations, by stage.
    """

    def __init__(self, expander: _Expander, out: Emitter, block: Block) -> None:
        self._all = expander
        self._staged = expander.staged
        self._out = out
        self._running: list[Operation] = []
        carried = block.args[1:]
        kept = dict(zip(expander.kept, carried, strict=False))
        first: Values = {a: kept[value] for a, value in expander.first_carried().items()}
        first[expander.body.args[0]] = block.args[0]
        second: Values = dict(zip(expander.crossing, carried[len(kept) :], strict=True))
        self.now: tuple[Values, Values] = (first, second)

    def run(self) -> list[SSAValue]:
        """Emit the ops; what the body carries."""
        for op in self._staged.order:
            self._emit(op)
        if self._running:
            self._wait(len(self._running))
        self._hand_over()
        first = self.now[0]
        carried = (*self._all.kept, *self._all.crossing)
        return [self._all.value(self._out, value, first) for value in carried]

    def _hand_over(self) -> None:
        """Let the next iteration see what the second stage has made of this one."""
        first, second = self.now
        for argument, value in self._all.late_carried().items():
            if value in second:
                first[argument] = second[value]

    def _emit(self, op: Operation) -> None:
        self._wait_for(op)
        self._hand_over()
        made = self._all.emit(self._out, op, self.now[self._staged.stage[op]])
        if op in self._staged.dots:
            made.properties["is_async"] = UnitAttr()
            self._running.append(op)

    def _wait_for(self, op: Operation) -> None:
        """Wait for the products that an op takes, or stands behind."""
        needed = {*self._staged.behind.get(op, ()), *self._made_here(op)}
        ended = [number for number, dot in enumerate(self._running, 1) if dot in needed]
        if ended:
            self._wait(ended[-1])

    def _made_here(self, op: Operation) -> list[Operation]:
        """What makes an op's operands in the same body: the others were made a body before."""
        stage = self._staged.stage
        late = self._all.late_carried() if stage[op] == 0 else {}
        found: list[Operation] = []
        for value in taken_by(op, self._all.body):
            source = late.get(value, value)
            is_own = value in late or (
                isinstance(value, OpResult) and stage.get(value.op) == stage[op]
            )
            if is_own and isinstance(source, OpResult):
                found.append(source.op)
        return found

    def _wait(self, count: int) -> None:
        """Wait for the first products that run, and tie what must not be done before."""
        ended, self._running = self._running[:count], self._running[count:]
        tied = [(self._values_of(dot), dot.results[0]) for dot in ended]
        tied += [(self.now[0], value) for dot in ended for value in self._narrowed(dot)]
        tiles = [values[value] for values, value in tied]
        properties = {"pending": IntegerAttr(len(self._running), i32)}
        types = [tile.type for tile in tiles]
        wait = self._out.emit(DotWaitOp, tiles, types, properties)
        for (values, value), result in zip(tied, wait.results, strict=True):
            values[value] = result

    def _values_of(self, op: Operation) -> Values:
        return self.now[self._staged.stage[op]]

    def _narrowed(self, dot: Operation) -> list[SSAValue]:
        """The tiles of which the operand of a product's next iteration is made, behind it.

        Tied to the wait, they are not converted to that operand while the product reads it.
        """
        makers = [op for op, dots in self._staged.behind.items() if dot in dots and op.results]
        taken = [value for op in makers for value in op.operands]
        return [
            value
            for value in dict.fromkeys(taken)
            if isinstance(value.type, TensorType) and value in self.now[0]
        ]
