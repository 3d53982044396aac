"""How what is known of an op's tile follows from what is known of its operands.

Sums, products and truncations wrap as they do in the program, so everything here is exact modulo
the width of the value's type. Widening is what breaks it: 250, 251, … 255, 0 has stride 1 in 8
bits, but not in 32. A widened stride jumps, then; only that of a signed 32-bit value is *assumed*
not to.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import ONE, ZERO, Expression, integer, symbol
from tilewright.analysis.affine.stride import UNIT, Stride
from tilewright.analysis.affine.tile import (
    AT_REST,
    GENERAL,
    SOME,
    AffineTile,
    Along,
    Wrap,
    total,
    uniform_tile,
    unknown,
)
from tilewright.analysis.reshapes import split_groups
from tilewright.analysis.strides import ADDRESS_BITS
from tilewright.ir.op import ElementwiseOp, ViewOp
from tilewright.ir.types import (
    PointerType,
    element_of,
    is_integer,
    is_pointer,
    shape_of,
    storage_bytes,
    width_bits,
)
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import (
    ELEMENTWISE,
    BitcastOp,
    ExtSIOp,
    ExtUIOp,
    SelectOp,
    TruncIOp,
)
from tilewright.ops.memory.ir import AddPtrOp, LoadOp
from tilewright.ops.shape.ir import ReshapeOp
from tilewright.support.dataclass import replace

_OFFSET_BITS = 64
_MAX_SHIFT = 63
_ONE_SIDED = frozenset(("slt", "sle", "sgt", "sge"))

Tiles = Callable[[SSAValue], AffineTile]
"""What is known of a value: of every operand, and of what these were computed from."""
Rule = Callable[[Tiles, Operation], AffineTile]


def tile_of_scalar(value: SSAValue) -> AffineTile:
    """A scalar as a tile without dimensions: what it was sign-extended from, as a symbol."""
    if is_pointer(value.type):
        return AffineTile((), ZERO, value)
    while isinstance(value, OpResult) and type(value.op) is ExtSIOp:
        value = value.op.operands[0]
    if isinstance(value, OpResult) and type(value.op) is ConstantOp:
        return AffineTile((), _number(value.op))
    return AffineTile((), symbol(value) if is_integer(value.type) else None)


def compute(tiles: Tiles, value: SSAValue) -> AffineTile:
    """What is known of a tile by the rule of its op; `tiles` knows what it is computed from."""
    op = value.op if isinstance(value, OpResult) else None
    rule = None if op is None else _RULES.get(type(op))
    if op is None:
        return unknown(len(shape_of(value.type)))
    if rule is not None:
        return rule(tiles, op)
    if isinstance(op, ViewOp):
        return _view(tiles, op)
    if isinstance(op, ElementwiseOp):
        return where_constant(tiles, op)
    return unknown(len(shape_of(value.type)))


def where_constant(tiles: Tiles, op: Operation) -> AffineTile:
    """Equal elements along dimensions where every operand has them, general elsewhere."""
    operands = [tiles(operand).dims for operand in op.operands]
    columns = zip(*(dims for dims in operands if dims), strict=True)
    dims = tuple(SOME if all(a.is_still() for a in column) else GENERAL for column in columns)
    return AffineTile(dims or (SOME,) * len(shape_of(op.results[0].type)), None)


def _number(op: Operation) -> Expression | None:
    assert isinstance(op, ConstantOp)
    number = op.splat_value()
    return integer(number) if isinstance(number, int) else None


def _constant(tiles: Tiles, op: Operation) -> AffineTile:
    return uniform_tile(len(shape_of(op.results[0].type)), _number(op))


def _range(tiles: Tiles, op: Operation) -> AffineTile:
    assert isinstance(op, MakeRangeOp)
    return AffineTile((Along(UNIT, integer(op.start.value.data)),))


def _combined(left: AffineTile, right: AffineTile, sign: int = 1) -> AffineTile:
    dims = tuple(a.plus(b, sign) for a, b in zip(left.dims, right.dims, strict=True))
    return AffineTile(dims, total(left.rest, right.rest, sign), left.base)


def _sum(tiles: Tiles, op: Operation) -> AffineTile:
    return _combined(tiles(op.operands[0]), tiles(op.operands[1]))


def _difference(tiles: Tiles, op: Operation) -> AffineTile:
    return _combined(tiles(op.operands[0]), tiles(op.operands[1]), -1)


def _offset(tiles: Tiles, op: Operation) -> AffineTile:
    """ptr + offset: the offset is a signed number of any width."""
    pointer, offset = map(tiles, op.operands)
    type_ = op.operands[1].type
    if width_bits(type_) < _OFFSET_BITS:
        offset = _extended(offset, type_, is_signed=True)
    return _combined(pointer, offset)


def _scaled(tile: AffineTile, factor: Expression) -> AffineTile | None:
    """The product with one number; None where it would be large."""
    rest = tile.rest
    if rest is not None and rest.is_large_with(factor):
        return None
    if any(along.is_large_with(factor) for along in tile.dims):
        return None
    rest = None if rest is None else rest.times(factor)
    return AffineTile(tuple(along.times(factor) for along in tile.dims), rest)


def _product(tiles: Tiles, op: Operation) -> AffineTile:
    left, right = map(tiles, op.operands)
    for value, other in ((left, right), (right, left)):
        factor = other.uniform()
        scaled = None if factor is None else _scaled(value, factor)
        if scaled is not None:
            return scaled
    return where_constant(tiles, op)


def _shift(tiles: Tiles, op: Operation) -> AffineTile:
    value, amount = map(tiles, op.operands)
    by = amount.uniform()
    count = None if by is None else by.as_int()
    if count is None or not 0 <= count < _MAX_SHIFT:
        return where_constant(tiles, op)
    return _scaled(value, integer(1 << count)) or where_constant(tiles, op)


def _jumping(tiles: Tiles, op: Operation) -> AffineTile:
    """min(x, m), max(x, m) with constant m: the strides of x, but for jumps."""
    value, bound = map(tiles, op.operands)
    if bound.uniform() is None:
        return where_constant(tiles, op)
    strides = (along.stride for along in value.dims)
    dims = tuple(GENERAL if s is None else Along(s.with_jumps(), None) for s in strides)
    return AffineTile(dims, None)


def _remainder(tiles: Tiles, op: Operation) -> AffineTile:
    """x % m with constant m: x wraps where it moves; general where it jumps already.

    An unsigned remainder of what may be negative, as a signed number, starts anywhere.
    """
    value, bound = map(tiles, op.operands)
    modulus = bound.uniform()
    jumping = _jumping(tiles, op)
    if modulus is None:
        return jumping
    dims = tuple(
        GENERAL if before.stride is None or before.stride.jumps else after
        for before, after in zip(value.dims, jumping.dims, strict=True)
    )
    moving = [d for d, along in enumerate(value.dims) if not along.is_still()]
    start = value.start()
    is_signed = type(op) is ELEMENTWISE["arith.remsi"]
    if start is None or not is_signed or len(moving) != 1 or not value.dims[moving[0]].is_linear():
        return AffineTile(dims, None)
    (dim,) = moving
    stride = value.dims[dim].stride
    assert stride is not None
    wrap = Along(dims[dim].stride, ZERO, Wrap(start, stride.value, modulus, ONE))
    return AffineTile((*(AT_REST,) * dim, wrap, *(AT_REST,) * (len(dims) - dim - 1)))


def _select(tiles: Tiles, op: Operation) -> AffineTile:
    """where(i < n, i, constant): the strides of i, but for jumps; general where i has no stride.

    The condition holds on one side of a bound, so that the constant is never only in the middle of
    a run: no equality, no unsigned number (`i - 4 < n` may hold around a gap), nothing that jumps.
    """
    condition, lhs, rhs = op.operands
    fixed = where_constant(tiles, op)
    compared = condition.op if isinstance(condition, OpResult) else None
    if not shape_of(condition.type) or type(compared) is not CmpIOp:
        return fixed
    if compared.predicate_name() not in _ONE_SIDED:
        return fixed
    left, right = map(tiles, compared.operands)
    if tiles(rhs).uniform() is None or right.uniform() is None:
        return fixed
    strides = zip(tiles(lhs).strides, left.strides, strict=True)
    chosen = tuple(Along(_chosen(stride, of), None) for stride, of in strides)
    dims = tuple(f if f.is_still() else c for f, c in zip(fixed.dims, chosen, strict=True))
    return AffineTile(dims, None)


def _chosen(stride: Stride | None, compared: Stride | None) -> Stride | None:
    if stride is None or compared is None or compared.as_int() is None:
        return None
    # Of two constants only the jump between them is left, which a stride of nothing cannot say.
    return None if stride.is_zero() or stride.jumps or compared.jumps else stride.with_jumps()


def _same(tiles: Tiles, op: Operation) -> AffineTile:
    return tiles(op.operands[0])


def _as_other_type(tiles: Tiles, op: Operation) -> AffineTile:
    """Pointers to elements as large as before, as for booleans: the same places, from no `base`."""
    before, after = (element_of(value.type) for value in (op.operands[0], op.results[0]))
    if not isinstance(before, PointerType) or not isinstance(after, PointerType):
        return where_constant(tiles, op)
    is_alike = storage_bytes(before.pointee) == storage_bytes(after.pointee)
    return replace(tiles(op.operands[0]), base=None) if is_alike else where_constant(tiles, op)


def _sign_extended(tiles: Tiles, op: Operation) -> AffineTile:
    return _extended(tiles(op.operands[0]), op.operands[0].type, is_signed=True)


def _zero_extended(tiles: Tiles, op: Operation) -> AffineTile:
    return _extended(tiles(op.operands[0]), op.operands[0].type, is_signed=False)


def _extended(tile: AffineTile, narrow: Attribute, is_signed: bool) -> AffineTile:
    """A value in a wider type than `narrow`, where it wraps no more where it did before."""
    bits = width_bits(narrow)
    if is_signed and _fits(tile.uniform(), bits):
        return tile
    if is_signed and bits >= ADDRESS_BITS:
        dims = tuple(along.assumed() for along in tile.dims)
        return AffineTile(dims, None if tile.rest is None else tile.rest.assumed())
    return AffineTile(tuple(_narrow(along) for along in tile.dims), None)


def _fits(value: Expression | None, bits: int) -> bool:
    """Whether a number needs no more than `bits` bits: an integer, or one scalar of so many."""
    if value is None:
        return False
    if value.as_int() is not None:
        return value.reduced(bits) == value
    scalars = [factors[0] for c, factors in value.terms if c == 1 and len(factors) == 1]
    return len(value.terms) == len(scalars) == 1 and width_bits(scalars[0].type) <= bits


def _narrow(along: Along) -> Along:
    """A dimension of a widened value of few bits: it jumps; jumps of two kinds could cancel."""
    stride = along.stride
    if stride is not None and not stride.is_zero():
        stride = None if stride.jumps else stride.with_jumps()
    return Along(stride, None)


def _truncated(tiles: Tiles, op: Operation) -> AffineTile:
    """The low bits; jumps could cancel in them, several to a multiple of the type's range.

    Strides stay what they are modulo the range; of a start that does not fit, nothing is kept.
    """
    tile, bits = tiles(op.operands[0]), width_bits(op.results[0].type)
    dims = tuple(_low_bits(along, bits) for along in tile.dims)
    return AffineTile(dims, tile.rest if _fits(tile.rest, bits) else None)


def _low_bits(along: Along, bits: int) -> Along:
    if along.stride is None or along.stride.jumps:
        return GENERAL
    keeps_start = along.is_linear() and _fits(along.start, bits)
    return Along(along.stride, along.start if keeps_start else None)


def _view(tiles: Tiles, op: ViewOp) -> AffineTile:
    """Elements as they are, at other indices; a new dimension repeats them."""
    source = tiles(op.operands[0])
    dims = [AT_REST] * len(shape_of(op.results[0].type))
    for along, target in zip(source.dims, op.source_dims(), strict=True):
        dims[target] = along
    return AffineTile(tuple(dims), source.rest, source.base)


def _reshaped(tiles: Tiles, op: Operation) -> AffineTile:
    """Unit dimensions come and go; a split of one affine dimension stays affine."""
    before, after = (shape_of(value.type) for value in (op.operands[0], op.results[0]))
    source, rank = tiles(op.operands[0]), len(after)
    if all(along.is_still() for along in source.dims):
        return uniform_tile(rank, source.uniform(), source.base)
    groups = split_groups(before, after)
    if groups is None:
        return unknown(rank)
    dims, kept = [AT_REST] * rank, set[int]()
    for dim, targets in groups:
        along = source.dims[dim]
        kept.add(dim)
        for place, (target, scale) in enumerate(targets):
            part = along if not place else replace(along, start=ZERO)
            dims[target] = along if len(targets) == 1 else part.split(scale)
    lost = [along.start for dim, along in enumerate(source.dims) if dim not in kept]
    rest = source.rest
    for start in lost:
        rest = None if rest is None or start is None else rest.plus(start)
    return AffineTile(tuple(dims), rest, source.base)


_RULES: dict[type[Operation], Rule] = {
    ConstantOp: _constant,
    MakeRangeOp: _range,
    LoadOp: where_constant,
    AddPtrOp: _offset,
    BitcastOp: _as_other_type,
    ELEMENTWISE["arith.addi"]: _sum,
    ELEMENTWISE["arith.subi"]: _difference,
    ELEMENTWISE["arith.muli"]: _product,
    ELEMENTWISE["arith.shli"]: _shift,
    ELEMENTWISE["arith.remsi"]: _remainder,
    ELEMENTWISE["arith.remui"]: _remainder,
    ELEMENTWISE["arith.minsi"]: _jumping,
    ELEMENTWISE["arith.maxsi"]: _jumping,
    SelectOp: _select,
    HintOp: _same,
    ReshapeOp: _reshaped,
    ExtSIOp: _sign_extended,
    ExtUIOp: _zero_extended,
    TruncIOp: _truncated,
}
