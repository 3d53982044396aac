"""Applies a combine region to registers, and moves what it works on between lanes.

A value is a tuple of names, one for each operand of the fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Block, Operation

from tilewright.analysis.commutation import COMMUTATIVE_OPS
from tilewright.codegen.context import Rule
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.words import as_words32, from_words32, pack, storage_bits, unpack
from tilewright.ir.types import element_of
from tilewright.ops.reduction.ir import CombineOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

Value = tuple[str, ...]


@dataclass(frozen=True)
class Combine:
    """The combine function of one fold in one function being emitted.

    `rules` are those of the ops of its region in order, which is emitted many times, at the line
    of the fold.
    """

    ctx: SimtContext
    block: Block
    elements: tuple[Attribute, ...]
    rules: tuple[tuple[Rule, Operation], ...]

    @property
    def single_op(self) -> str:
        """The name of the one op of the region, if it applies it to its two arguments; else ''."""
        ops = list(self.block.ops)
        if len(ops) != 2 or len(self.elements) != 1:
            return ""
        is_plain = set(ops[0].operands) == set(self.block.args)
        is_plain = is_plain and list(ops[1].operands) == list(ops[0].results)
        return ops[0].name if is_plain else ""

    @property
    def is_commutative(self) -> bool:
        """Whether both orders of the operands are known to give the same bits."""
        return self.single_op in COMMUTATIVE_OPS

    def apply(self, first: Value, second: Value) -> Value:
        """`first ⊕ second`."""
        values = self.ctx.values
        values.update(zip(self.block.args, (*first, *second), strict=True))
        for rule, op in self.rules:
            rule(self.ctx, op)
        end = self.block.last_op
        assert end is not None
        return tuple(values[value] for value in end.operands)

    def fold(self, values: Sequence[Value]) -> Value:
        """All values combined: the first half ⊕ the second half, the first the larger one."""
        if len(values) == 1:
            return values[0]
        middle = (len(values) + 1) // 2
        return self.apply(self.fold(values[:middle]), self.fold(values[middle:]))


def combine_of(ctx: SimtContext, op: CombineOp) -> Combine:
    """The combine function of an op."""
    block = op.regions[0].block
    rules = tuple((_rule_of(ctx, inner), inner) for inner in list(block.ops)[:-1])
    return Combine(ctx, block, tuple(element_of(value.type) for value in op.operands), rules)


def _rule_of(ctx: SimtContext, op: Operation) -> Rule:
    """The rule of an op on scalars."""
    rule = ctx.rules.find(type(op))
    if rule is None and ctx.default_rules is not None:
        rule = ctx.default_rules.find(type(op))
    if rule is None:
        raise InternalError(f"no lowering rule for {op.name} ({ctx.rules.name})")
    return rule


def exchange(
    ctx: SimtContext,
    elements: Sequence[Attribute],
    values: Sequence[Value],
    move: Callable[[str], str],
) -> list[Value]:
    """The values with every 32-bit word moved by `move`; narrow elements share words."""
    columns = [
        move_registers_by(ctx, element, [value[place] for value in values], move)
        for place, element in enumerate(elements)
    ]
    return list(zip(*columns, strict=True))


def move_registers_by(
    ctx: SimtContext, element: Attribute, names: Sequence[str], move: Callable[[str], str]
) -> list[str]:
    """Registers of one element type with every 32-bit word moved by `move`."""
    fn = ctx.fn
    share = 32 // storage_bits(element) if storage_bits(element) < 32 else 1
    moved: list[str] = []
    shared = len(names) // share * share if share > 1 else 0
    if shared:
        words = pack(fn, element, names[:shared], 32)
        moved += unpack(fn, element, [move(word) for word in words], 32)
    for name in names[shared:]:
        words = [move(word) for word in as_words32(fn, element, name)]
        moved.append(from_words32(fn, element, words))
    return moved


def exchange_lanes(
    ctx: SimtContext, elements: Sequence[Attribute], values: Sequence[Value], mask: int
) -> list[Value]:
    """The values of the lane whose index is this one's xor `mask`."""
    return exchange(ctx, elements, values, lambda word: ctx.target.shuffle_xor(ctx.fn, word, mask))


def take_from_lane(
    ctx: SimtContext, elements: Sequence[Attribute], values: Sequence[Value], lane: str
) -> list[Value]:
    """The values of lane `lane` (i32)."""
    return exchange(
        ctx, elements, values, lambda word: ctx.target.shuffle_index(ctx.fn, word, lane)
    )
