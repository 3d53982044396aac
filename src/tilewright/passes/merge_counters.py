"""Replaces a carried number that steps as its loop's counter does by that counter (T0 to T0).

    %c = %start - 132
    for %t = %start to %end step 132 iter_args(%i = %c) { %j = %i + 132; use(%j); yield %j }
    ⇒ for %t = %start to %end step 132 { use(%t) }

Why: persistent kernels count a tile twice, once for what they load and once for what they store.
Only of the counter it is seen that it is not negative, and that both are the same tile.

Both step by the same value, so their difference stays what it was before the loop, also where
numbers wrap. Where that is no integer, or one step, the loop stays as it is. Requires and
produces T0.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use

from tilewright.ir.effects import is_free
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp, Counter, Phi, counter_of, phis_of, without_phis
from tilewright.ir.types import i32
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass, replace

_ADD, _SUBTRACT = (ELEMENTWISE[f"arith.{name}"] for name in ("addi", "subi"))


@dataclass(frozen=True)
class MergeCounters(Pass):
    """The pass; see the module."""

    name = "merge-counters"
    after = ("lower-block-pointers",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every loop of a module, inner ones first."""
        for op in reversed(tuple(module.walk())):
            counter = counter_of(op)
            if isinstance(op, ControlFlowOp) and counter is not None and counter.value.type == i32:
                _merge(op, counter)


@dataclass(frozen=True)
class _Sum:
    """root + integer + steps · (the step of a loop); without a root where that is an integer."""

    root: SSAValue | None
    integer: int = 0
    steps: int = 0

    def stepped(self, step: SSAValue) -> _Sum:
        """One step more."""
        number = constant_of(step)
        if isinstance(number, int):
            return replace(self, integer=self.integer + number)
        return replace(self, steps=self.steps + 1)

    def ahead_of(self, other: _Sum) -> _Sum:
        """How far this is ahead of a sum of the same root."""
        return _Sum(None, self.integer - other.integer, self.steps - other.steps)


def _merge(loop: ControlFlowOp, counter: Counter) -> None:
    """Count what steps as the counter does by it, and carry what nothing reads no more."""
    dropped: list[Phi] = []
    for phi in phis_of(loop):
        argument, following = _second_counter(loop, phi, counter) or (None, None)
        if argument is None or following is None:
            continue
        start, _ = phi.sources()
        ahead = _difference(start, counter)
        if ahead is None or abs(ahead.steps) > 1:
            continue
        _count(_uses_but(argument, following.op), counter, ahead)
        _count(_uses_but(following, *phi.incoming[1]), counter, ahead.stepped(counter.step))
        if all(value is argument or value.first_use is None for value in phi.values):
            _hand_on(phi, counter.value)
            following.op.detach()
            following.op.erase()
            dropped.append(phi)
    if dropped:
        without_phis(loop, dropped)


def _hand_on(phi: Phi, value: SSAValue) -> None:
    """Let the end of a loop's body hand on another value."""
    end, number = phi.incoming[1]
    end.operands[number] = value


def _second_counter(
    loop: ControlFlowOp, phi: Phi, counter: Counter
) -> tuple[BlockArgument, OpResult] | None:
    """A carried number and the next one, which is it plus the loop's step."""
    arguments = [value for value in phi.values if isinstance(value, BlockArgument)]
    if len(phi.incoming) != 2 or phi.incoming[0][0] is not loop or len(arguments) != 1:
        return None
    (argument,), following = arguments, phi.sources()[1]
    if argument.block is not counter.value.block or argument.type != counter.value.type:
        return None
    if not isinstance(following, OpResult) or not isinstance(following.op, _ADD):
        return None
    left, right = following.op.operands
    by = right if left is argument else left
    return (
        (argument, following) if argument in (left, right) and _are_same(by, counter.step) else None
    )


def _are_same(one: SSAValue, other: SSAValue) -> bool:
    """Whether two values are one, or asked for twice: a constant, the program's number."""
    if one is other:
        return True
    if not isinstance(one, OpResult) or not isinstance(other, OpResult) or one.op.operands:
        return False
    is_alike = type(one.op) is type(other.op) and one.op.properties == other.op.properties
    return is_alike and not other.op.operands and is_free(one.op)


def _difference(start: SSAValue, counter: Counter) -> _Sum | None:
    """How far a number starts ahead of the counter; None where that is not known."""
    own, other = _sum(start, counter), _sum(counter.start, counter)
    if own.root is None or other.root is None:
        is_same = own.root is other.root
    else:
        is_same = _are_same(own.root, other.root)
    return own.ahead_of(other) if is_same else None


def _sum(value: SSAValue, counter: Counter) -> _Sum:
    """A number taken apart."""
    found = _Sum(value)
    while isinstance(found.root, OpResult) and isinstance(found.root.op, _ADD | _SUBTRACT):
        left, right = found.root.op.operands
        sign = -1 if isinstance(found.root.op, _SUBTRACT) else 1
        number = constant_of(right)
        if isinstance(number, int):
            found = _Sum(left, found.integer + sign * number, found.steps)
        elif _are_same(right, counter.step):
            found = _Sum(left, found.integer, found.steps + sign)
        else:
            break
    number = None if found.root is None else constant_of(found.root)
    return _Sum(None, found.integer + number, found.steps) if isinstance(number, int) else found


def _uses_but(value: SSAValue, op: Operation, number: int | None = None) -> list[Use]:
    """The uses of a value, without that by an op, as its operand `number` where one is given."""
    return [
        use
        for use in value.uses
        if use.operation is not op or (number is not None and use.index != number)
    ]


def _count(uses: Sequence[Use], counter: Counter, ahead: _Sum) -> None:
    """Let uses of a value be of the counter, so far ahead, in its place."""
    first = counter.value.block.first_op
    if not uses or first is None:
        return
    make, found = TileBuilder(first), SSAValue.get(counter.value)
    if ahead.integer:
        found = make.binary("addi", found, make.integer(ahead.integer))
    for _ in range(abs(ahead.steps)):
        found = make.binary("addi" if ahead.steps > 0 else "subi", found, counter.step)
    for use in uses:
        use.operation.operands[use.index] = found
