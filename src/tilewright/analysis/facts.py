"""Axis facts of every value of a function, and what they say about memory accesses.

A forward dataflow: each op's rule gives the facts of its results from those of its operands;
loops start from their initial values and go down to what all iterations agree on. Hints and
assumptions of the author count. `analysis.axis` says what the facts mean.

    facts = AxisFacts(module)
    facts.of(pointer).contiguity          # elements in a row, per dimension
    facts.vector_width(load, 8, 1)        # elements that one access may take
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import gcd

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.axis import Facts, meet, power_of_two, scattered, unknown
from tilewright.analysis.axis_rules import Rule, same_inputs, same_numbers
from tilewright.analysis.axis_shapes import SHAPE_RULES
from tilewright.analysis.promises import assumed, hinted
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import PointerType, element_of, shape_of, storage_bytes
from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.debug import HintOp
from tilewright.ops.function import FuncOp
from tilewright.ops.staging import ConvertLayoutOp
from tilewright.support.dataclass import replace
from tilewright.support.rules import RuleTable

MAX_ACCESS_BYTES = 16
"""The widest access of one lane to global memory."""
_ROUNDS = 8
"""Iterations of a loop after which facts that still change are given up."""
_RULES: RuleTable[Rule] = RuleTable("axis facts and promises", SHAPE_RULES)
_RULES.register(HintOp)(hinted)
_RULES.register(ConvertLayoutOp)(same_numbers)


class AxisFacts:
    """The axis facts of the values inside an op: a module, a function or a loop."""

    def __init__(self, top: Operation) -> None:
        self._facts: dict[SSAValue, Facts] = {}
        # What held in the last iteration of a loop. Facts only weaken while the loops around it
        # are walked again, so a loop goes on from there: else nests take 2^depth walks.
        self._settled: dict[Operation, tuple[Facts, ...]] = {}
        self._promises = assumed(top)
        if isinstance(top, FuncOp):
            self._function(top)
        else:
            self._regions(top)

    def of(self, value: SSAValue) -> Facts:
        """What is known of a value."""
        found = self._facts.get(value)
        return unknown(value.type) if found is None else found

    def pointer_alignment_bytes(self, value: SSAValue, dim: int) -> int:
        """The alignment of the first element of each run of a pointer tile along `dim`."""
        return self.of(value).divisibility[dim]

    def mask_alignment(self, value: SSAValue, dim: int) -> int:
        """How many consecutive elements along `dim` share one value of a mask."""
        return self.of(value).constancy[dim]

    def vector_width(self, op: Operation, layout_contiguous_elems: int, order_dim: int) -> int:
        """How many elements along `order_dim` one access of a load or store may take.

        *Units*: a power of two, at most MAX_ACCESS_BYTES and `layout_contiguous_elems`, which
        is how many consecutive elements a lane holds. All of them lie in a row in memory at an
        aligned address and share one value of the mask. *Constraints*: the first operand is a
        pointer; a `mask` is an operand of i1.
        """
        pointer = op.operands[0]
        element = element_of(pointer.type)
        assert isinstance(element, PointerType)
        most = MAX_ACCESS_BYTES // storage_bytes(element.pointee)
        width = min(power_of_two(layout_contiguous_elems), max(1, most))
        if not shape_of(pointer.type):
            return 1
        width = min(width, self.of(pointer).aligned_run(order_dim))
        mask: SSAValue | None = getattr(op, "mask", None)
        if mask is not None:
            width = gcd(width, self.mask_alignment(mask, order_dim))
        return width

    def coalesce_order(self, pointer: SSAValue) -> tuple[int, ...]:
        """The dimensions of a pointer tile, the one with the longest runs first.

        Of equal ones the last dimension comes first, as in row-major order.
        """
        contiguity = self.of(pointer).contiguity
        rank = len(shape_of(pointer.type))
        return tuple(sorted(range(rank), key=lambda dim: (-contiguity[dim], -dim)))

    def _set(self, value: SSAValue, facts: Facts) -> None:
        promise = self._promises.get(value)
        self._facts[value] = facts if promise is None else promise.refine(facts)

    def _all(self, values: Sequence[SSAValue]) -> tuple[Facts, ...]:
        return tuple(self.of(value) for value in values)

    def _function(self, function: FuncOp) -> None:
        for index, argument in enumerate(function.body.block.args):
            facts = unknown(argument.type)
            given = function.argument_facts(index).get("tt.divisibility")
            if isinstance(given, IntegerAttr) and len(facts.extents) == 1:
                divisor = power_of_two(given.value.data)
                facts = replace(facts, divisibility=(divisor,))
            self._set(argument, facts)
        self._block(function.body.block)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._visit(op)

    def _regions(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._block(block)

    def _visit(self, op: Operation) -> None:
        if not op.regions:
            self._results(op)
        elif isinstance(op, FuncOp):
            self._function(op)
        elif isinstance(op, ForOp):
            self._for(op)
        elif isinstance(op, IfOp):
            self._if(op)
        elif isinstance(op, WhileOp):
            self._while(op)
        else:
            self._regions(op)

    def _results(self, op: Operation) -> None:
        """One rule speaks of all results, which differ in no fact that it knows."""
        rule = _RULES.find(type(op))
        if rule is None and isinstance(op, ElementwiseOp) and op.operands:
            rule = same_inputs
        facts = None if rule is None else rule(op, self._all(op.operands))
        for result in op.results:
            self._set(result, unknown(result.type) if facts is None else facts)

    def _for(self, loop: ForOp) -> None:
        low, step = self.of(loop.lb), self.of(loop.step)
        divisor = min(low.divisor(), step.divisor())
        body = loop.body.block
        counter, *carried = body.args
        # A step is positive, so the counter never falls below its first value.
        index = scattered((1,), (1,), divisor, is_nonnegative=low.is_nonnegative)
        self._set(counter, index)
        state = self._start(loop, loop.iter_args)
        for round_ in count():
            self._enter(carried, state)
            self._block(body)
            after = self._meet_all(state, self._outputs(body), carried, round_ >= _ROUNDS)
            if after == state:
                break
            state = after
        self._settled[loop] = state
        self._enter(loop.results, state)

    def _start(self, loop: Operation, initial: Sequence[SSAValue]) -> tuple[Facts, ...]:
        state = self._all(initial)
        before = self._settled.get(loop)
        return state if before is None else tuple(map(meet, before, state))

    def _while(self, loop: WhileOp) -> None:
        before, after = loop.before_region.block, loop.after_region.block
        state = self._start(loop, loop.arguments)
        for round_ in count():
            self._enter(before.args, state)
            self._block(before)
            handed_on = self._outputs(before)[1:]
            self._enter(after.args, handed_on)
            self._block(after)
            following = self._meet_all(state, self._outputs(after), before.args, round_ >= _ROUNDS)
            if following == state:
                break
            state = following
        self._settled[loop] = state
        self._enter(loop.results, self._outputs(before)[1:])

    def _if(self, branch: IfOp) -> None:
        self._regions(branch)
        if not branch.results:
            return
        yes, no = (self._outputs(region.block) for region in branch.regions)
        self._enter(branch.results, tuple(map(meet, yes, no)))

    def _enter(self, values: Sequence[SSAValue], facts: Sequence[Facts]) -> None:
        for value, known in zip(values, facts, strict=True):
            self._set(value, known)

    def _outputs(self, block: Block) -> tuple[Facts, ...]:
        assert block.last_op is not None
        return self._all(block.last_op.operands)

    def _meet_all(
        self,
        state: tuple[Facts, ...],
        following: tuple[Facts, ...],
        values: Sequence[SSAValue],
        gives_up: bool,
    ) -> tuple[Facts, ...]:
        """What holds before and after an iteration; nothing, for what still changes too late."""
        met = tuple(map(meet, state, following))
        if not gives_up:
            return met
        return tuple(
            new if new == old else unknown(value.type)
            for old, new, value in zip(state, met, values, strict=True)
        )
