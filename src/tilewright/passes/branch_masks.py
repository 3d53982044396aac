"""Masks a tile under a branch, where a few scalars tell that the mask keeps all of it (T0 to T0).

    %s = select(broadcast(%rows) >= broadcast(%columns), %x, %low)
    ⇒ %all = least(%rows) >= greatest(%columns)
      %s = if %all { yield %x } else { yield select(…) }

For loops over keys with a causal mask or one of the length, of which few iterations need it. What
is compared is a scalar and a range of constants; their sum must not wrap where nothing is masked.
Chains of selects of one tile come under one branch. A tile of a constant stays without one: what
it costs is the branch, and its tile would have a layout of its own (`x + where(mask, 0, low)`).

Why here: behind roles, so that each replica asks for its own rows; before layouts, as the branch
gives a tile. Peeling the masked iterations instead makes bodies that spill (H200 attention, three
groups: 423 TFLOP/s for 629). Requires and produces T0, with roles or without; a schedule with
`mask branch` asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir.edits import erase_unused
from tilewright.ir.effects import is_free
from tilewright.ir.op import ElementwiseOp, build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import loops_around
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ir.types import element_of, i1, i64, shape_of
from tilewright.ops.control_flow import IfOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp, constant_of, splatted
from tilewright.ops.elementwise.comparisons import INTEGER_PREDICATES, CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, SelectOp
from tilewright.ops.function import find_kernel
from tilewright.support.dataclass import dataclass
from tilewright.support.worklist import once

# What gives the elements of its operand, or some of them, several times.
_VIEWS = ("tt.expand_dims", "tt.broadcast", "tw.hint")
_AND, _ADD, _SUBTRACT = "arith.andi", "arith.addi", "arith.subi"
_LEAST_RANK = 2
"""By definition: a mask by rows and columns."""
_MIRRORED = {"sge": "sle", "sgt": "slt"}


@dataclass(frozen=True)
class BranchMasks(Pass):
    """The pass; see the module."""

    name = "branch-masks"
    requires = "T0r"
    produces = "T0r"
    after = ("form-roles",)

    def apply(self, module: ModuleOp) -> None:
        """Branch around the masks of the kernel's loops."""
        kernel = find_kernel(module)
        schedule = schedule_of(kernel)
        if schedule is not None and schedule.mask == "branch":
            for mask in list(find_masks(kernel)):
                _branch(mask)


@dataclass(frozen=True)
class Range:
    """The integers that a tile holds: the sum of scalars, and of something from `low` to `high`."""

    scalars: tuple[SSAValue, ...]
    low: int
    high: int
    element: IntegerType

    @property
    def most(self) -> int:
        """The greatest integer of the type."""
        return (1 << (self.element.width.data - 1)) - 1

    def is_representable(self) -> bool:
        """Whether the constants alone are integers of the type."""
        return -self.most - 1 <= self.low <= self.high <= self.most


@dataclass(frozen=True)
class Comparison:
    """`less < more` for each element of the one and of the other; with `is_equal` also `==`."""

    less: Range
    more: Range
    is_equal: bool


@dataclass(frozen=True)
class Mask:
    """Selects of one tile, the inner first, and what holds where they all keep all of it."""

    selects: tuple[SelectOp, ...]
    holds: tuple[Comparison, ...]


def find_masks(kernel: Operation) -> Iterator[Mask]:
    """The masks in loops that scalars decide, in the order of the text."""
    for op in kernel.walk():
        if not isinstance(op, SelectOp) or _is_of_chain(op):
            continue
        mask = _mask_of(op)
        if mask is not None and next(loops_around(op), None) is not None:
            yield mask


def _is_of_chain(op: SelectOp) -> bool:
    """Whether a select of the same tile follows, which scalars decide as well."""
    uses = list(op.result.uses)
    following = uses[0].operation if len(uses) == 1 else None
    if not isinstance(following, SelectOp) or following.parent is not op.parent:
        return False
    return following.lhs is op.result and comparisons(following.condition) is not None


def _mask_of(op: SelectOp) -> Mask | None:
    if len(shape_of(op.result.type)) < _LEAST_RANK:
        return None
    selects: list[SelectOp] = []
    holds: list[Comparison] = []
    at: Operation | Block = op
    while isinstance(at, SelectOp) and (not selects or _is_of_chain(at)):
        found = comparisons(at.condition)
        if found is None:
            break
        selects.append(at)
        holds += found
        at = at.lhs.owner
    if selects and _is_computed_anywhere(selects[-1].lhs):
        return None
    return Mask(tuple(reversed(selects)), tuple(holds)) if selects else None


def _is_computed_anywhere(value: SSAValue) -> bool:
    """Whether a tile follows from scalars and ranges alone, so that any thread can compute it."""
    pending = [value]
    for part in once(pending):
        op = part.owner
        if isinstance(op, SplatOp | MakeRangeOp | ConstantOp) or not shape_of(part.type):
            continue
        if not isinstance(op, Operation):
            return False
        if not isinstance(op, ElementwiseOp) and op.name not in _VIEWS:
            return False
        pending += op.operands
    return True


def comparisons(condition: SSAValue) -> list[Comparison] | None:
    """What holds for all elements where a tile of conditions is true; None if unknown."""
    op = condition.owner
    if not isinstance(op, Operation):
        return None
    if op.name in _VIEWS:
        return comparisons(op.operands[0])
    if op.name == _AND:
        both = [comparisons(operand) for operand in op.operands]
        found = [each for each in both if each is not None]
        return [one for each in found for one in each] if len(found) == len(both) else None
    if not isinstance(op, CmpIOp):
        return None
    predicate = INTEGER_PREDICATES[op.predicate.value.data]
    sides = [range_of(op.lhs), range_of(op.rhs)]
    if predicate in _MIRRORED:
        predicate = _MIRRORED[predicate]
        sides.reverse()
    less, more = sides
    if less is None or more is None or predicate not in _MIRRORED.values():
        return None
    if not (less.is_representable() and more.is_representable()):
        return None
    return [Comparison(less, more, predicate == "sle")]


def range_of(value: SSAValue) -> Range | None:
    """The integers that a tile holds, where scalars and constants say it."""
    op, element = value.owner, element_of(value.type)
    if not isinstance(op, Operation) or not isinstance(element, IntegerType):
        return None
    if isinstance(op, MakeRangeOp):
        return Range((), op.start.value.data, op.end.value.data - 1, element)
    scalar = splatted(value)
    if scalar is not None:
        return Range((scalar,), 0, 0, element)
    number = constant_of(value)
    if number is not None:
        return Range((), int(number), int(number), element)
    if op.name in _VIEWS:
        return range_of(op.operands[0])
    if op.name not in (_ADD, _SUBTRACT):
        return None
    left, right = (range_of(operand) for operand in op.operands)
    if left is None or right is None or (op.name == _SUBTRACT and right.scalars):
        return None
    low, high = (right.low, right.high) if op.name == _ADD else (-right.high, -right.low)
    return Range((*left.scalars, *right.scalars), left.low + low, left.high + high, element)


# --- the branch ---------------------------------------------------------------------------------


def _branch(mask: Mask) -> None:
    """Put a branch in the place of the last select."""
    *_, last = mask.selects
    assert last.parent is not None
    scalars = _Scalars(last)
    is_all = scalars.all_of([scalars.holds(comparison) for comparison in mask.holds])
    kept = Block([build(YieldOp, [mask.selects[0].lhs], location=last.location)])
    masked = Block()
    made: dict[SSAValue, SSAValue] = {}
    for select in mask.selects:
        for operand in (select.condition, select.rhs):
            _compute_in(masked, operand, last.parent, made)
        masked.add_op(select.clone(made))
    end = masked.last_op
    assert end is not None
    masked.add_op(build(YieldOp, end.results, location=last.location))
    regions = [Region(kept), Region(masked)]
    branch = build(IfOp, [is_all], [last.result.type], None, regions, last.location)
    last.parent.insert_op_before(branch, last)
    branch.results[0].name_hint = last.result.name_hint
    last.result.replace_all_uses_with(branch.results[0])
    erase_unused(last)


def _compute_in(block: Block, value: SSAValue, home: Block, made: dict[SSAValue, SSAValue]) -> None:
    """Compute a tile in a block as `home` does, with what of it is computed there."""
    op = value.owner
    if value in made or not isinstance(op, Operation) or op.parent is not home:
        return
    if not is_free(op) or not shape_of(value.type) or op.regions:
        return
    for operand in op.operands:
        _compute_in(block, operand, home, made)
    block.add_op(op.clone(made))


class _Scalars:
    """Puts scalar ops in front of an op."""

    def __init__(self, before: Operation) -> None:
        self._before = before

    def _emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        **properties: Attribute,
    ) -> SSAValue:
        op = build(cls, list(operands), [type_], properties, location=self._before.location)
        assert self._before.parent is not None
        self._before.parent.insert_op_before(op, self._before)
        return op.results[0]

    def _number(self, type_: IntegerType, value: int) -> SSAValue:
        return self._emit(ConstantOp, (), type_, value=IntegerAttr(value, type_))

    def _is_at_most(self, left: SSAValue, right: SSAValue, *, is_equal: bool = True) -> SSAValue:
        number = INTEGER_PREDICATES.index("sle" if is_equal else "slt")
        return self._emit(CmpIOp, (left, right), i1, predicate=IntegerAttr(number, i64))

    def all_of(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """Whether all of some conditions hold."""
        first, *others = conditions
        for other in others:
            first = self._emit(ELEMENTWISE[_AND], (first, other), i1)
        return first

    def holds(self, comparison: Comparison) -> SSAValue:
        """Whether a comparison holds for all elements: for the extreme ones, and none wraps."""
        less, more = comparison.less, comparison.more
        conditions: list[SSAValue] = []
        ends: list[SSAValue] = []
        for side, offset in ((less, less.high), (more, more.low)):
            total = self._sum(side)
            conditions += self._does_not_wrap(side, total)
            number = self._number(side.element, offset)
            ends.append(self._emit(ELEMENTWISE[_ADD], (total, number), side.element))
        return self.all_of(
            [*conditions, self._is_at_most(ends[0], ends[1], is_equal=comparison.is_equal)]
        )

    def _sum(self, side: Range) -> SSAValue:
        """The scalars of a range added up; they wrap as the tile's elements do."""
        if not side.scalars:
            return self._number(side.element, 0)
        total, *others = side.scalars
        for other in others:
            total = self._emit(ELEMENTWISE[_ADD], (total, other), side.element)
        return total

    def _does_not_wrap(self, side: Range, total: SSAValue) -> list[SSAValue]:
        """Whether scalars and constants of a range fit its integers."""
        conditions: list[SSAValue] = []
        if side.high > 0:
            limit = self._number(side.element, side.most - side.high)
            conditions.append(self._is_at_most(total, limit))
        if side.low < 0:
            limit = self._number(side.element, -side.most - 1 - side.low)
            conditions.append(self._is_at_most(limit, total))
        return conditions
