"""What casts leave: the same numbers, or the same bits, in another type."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Attribute, Operation

from tilewright.analysis.affine.along import GENERAL, Along
from tilewright.analysis.affine.expression import ZERO, Expression
from tilewright.analysis.affine.rules.table import (
    RULES,
    Tiles,
    may_wrap,
    where_equal,
    wrapped,
)
from tilewright.analysis.affine.tile import AffineTile, Kind, constant_tile, kind_of, made
from tilewright.ir.types import is_integer, is_pointer, width_bits
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.ir import (
    BitcastOp,
    ExtSIOp,
    ExtUIOp,
    IndexCastOp,
    IntToPtrOp,
    PtrToIntOp,
    TruncIOp,
)
from tilewright.ops.staging import ConvertLayoutOp
from tilewright.support.dataclass import replace


@RULES.register(IndexCastOp, ConvertLayoutOp, HintOp)
def same_numbers(tiles: Tiles, op: Operation) -> AffineTile:
    """The same numbers in another type or layout."""
    return replace(tiles(op.operands[0]), kind=kind_of(op.results[0].type))


@RULES.register(ExtSIOp)
def _sign_extended(tiles: Tiles, op: Operation) -> AffineTile:
    bits = width_bits(op.results[0].type)
    return sign_extended(tiles(op.operands[0]), op.operands[0].type, bits)


def sign_extended(source: AffineTile, narrow: Attribute, bits: int) -> AffineTile:
    """Signed numbers in more `bits` than those of `narrow`."""
    if width_bits(narrow) == bits:
        return source
    kind, is_nonnegative = replace(source.kind, bits=bits), source.is_nonnegative
    if fits(source.uniform(), width_bits(narrow)):
        return replace(source, kind=kind)
    if may_wrap(narrow):
        return _aligned(source, kind, width_bits(narrow), is_nonnegative=is_nonnegative)
    if _stays_within(source, width_bits(narrow)):
        return replace(source, kind=kind)
    rest = None if source.rest is None else source.rest.assumed()
    dims = [along.assumed() for along in source.dims]
    return made(kind, dims, rest, source.divisor_at, is_nonnegative=is_nonnegative)


def fits(value: Expression | None, bits: int) -> bool:
    """Whether a number needs no more than `bits` bits: an integer, or one scalar of so many."""
    if value is None:
        return False
    if value.as_int() is not None:
        return value.reduced(bits) == value
    scalars = [factors[0] for c, factors in value.terms if c == 1 and len(factors) == 1]
    return len(value.terms) == len(scalars) == 1 and width_bits(scalars[0].type) <= bits


def _stays_within(source: AffineTile, bits: int) -> bool:
    """Whether a tile's numbers are known, and all of them signed ones of so many bits."""
    low = high = None if source.rest is None else source.rest.as_int()
    for along, size in zip(source.dims, source.kind.shape, strict=True):
        start = along.start.as_int() if along.is_linear() and along.start is not None else None
        step = None if along.stride is None else along.stride.as_int()
        if low is None or high is None or start is None or step is None:
            return False
        way = step * (size - 1)
        low, high = low + start + min(way, 0), high + start + max(way, 0)
    most = 1 << (bits - 1)
    return low is not None and high is not None and -most <= low and high < most


def _aligned(source: AffineTile, kind: Kind, bits: int, *, is_nonnegative: bool) -> AffineTile:
    """Numbers of so many bits that may have wrapped, in more: strides jump, aligned runs stay."""
    dims = _in_runs(source, map(_with_jumps, source.dims), bits)
    return made(kind, dims, None, source.divisor_at, is_nonnegative=is_nonnegative)


def _with_jumps(along: Along) -> Along:
    """A dimension of a widened value of few bits: it jumps; jumps of two kinds could cancel."""
    stride = along.stride
    if stride is not None and not stride.is_zero():
        stride = None if stride.jumps else stride.with_jumps()
    return Along(stride, None)


def _in_runs(source: AffineTile, dims: Iterable[Along], bits: int) -> list[Along]:
    """Dimensions with the groups of a source that so many low bits keep, signed."""
    most, found = 1 << (bits - 1), list[Along]()
    for dim, (along, before) in enumerate(zip(dims, source.dims, strict=True)):
        length = min(source.aligned_run(dim), most) if before.step.terms else before.length
        step = before.step if before.step.as_int() == 1 else ZERO
        found.append(along.grouped(step, length))
    return found


@RULES.register(ExtUIOp)
def _zero_extended(tiles: Tiles, op: Operation) -> AffineTile:
    """The same bits as an unsigned number."""
    source, bits = tiles(op.operands[0]), width_bits(op.operands[0].type)
    kind = kind_of(op.results[0].type)
    if source.constant is not None:
        return constant_tile(kind, source.constant & ((1 << bits) - 1))
    if not source.is_nonnegative or may_wrap(op.operands[0].type):
        return _aligned(source, kind, bits, is_nonnegative=True)
    dims = [_as_unsigned(along.assumed()) for along in source.dims]
    return made(kind, dims, None, source.divisor_at, is_nonnegative=True)


def _as_unsigned(along: Along) -> Along:
    """A dimension of a number of many bits that is not negative."""
    stride = along.stride if along.is_exact() else _with_jumps(along).stride
    return replace(along, stride=stride, start=None, form=None)


@RULES.register(TruncIOp)
def _truncated(tiles: Tiles, op: Operation) -> AffineTile:
    """The low bits; jumps could cancel in them, several to a multiple of the type's range.

    Strides stay what they are modulo the range; of a start that does not fit, nothing is kept.
    """
    source, kind = tiles(op.operands[0]), kind_of(op.results[0].type)
    if source.constant is not None:
        low = source.constant & ((1 << kind.bits) - 1)
        return constant_tile(kind, wrapped(low, kind.bits))
    strides = (_low_bits(along, kind.bits) for along in source.dims)
    dims = _in_runs(source, strides, kind.bits)
    rest = source.rest if fits(source.rest, kind.bits) else None
    return made(kind, dims, rest, source.divisor_at)


def _low_bits(along: Along, bits: int) -> Along:
    if along.stride is None or along.stride.jumps:
        return GENERAL
    keeps_start = along.is_linear() and fits(along.start, bits)
    return Along(along.stride, along.start if keeps_start else None)


@RULES.register(BitcastOp, IntToPtrOp, PtrToIntOp)
def _recast(tiles: Tiles, op: Operation) -> AffineTile:
    """The same bits, where a pointer's elements may have another size now.

    Pointers to elements as large as before, as for booleans, are the same places, from no `base`.
    """
    source, kind = tiles(op.operands[0]), kind_of(op.results[0].type)
    types = op.operands[0].type, op.results[0].type
    if not all(is_integer(t) or is_pointer(t) for t in types):
        return where_equal(tiles, op)
    if kind.unit == source.kind.unit and all(map(is_pointer, types)):
        return replace(source, base=None, kind=kind)
    if kind.unit == source.kind.unit:
        dims = [replace(along, start=None, form=None) for along in source.dims]
        return made(kind, dims, None, source.divisor_at, is_nonnegative=source.is_nonnegative)
    dims = [along if along.is_still() else GENERAL for along in source.dims]
    pairs = zip(dims, source.dims, strict=True)
    dims = [along.grouped(ZERO, before.equal()) for along, before in pairs]
    return made(kind, dims, None, source.divisor, is_nonnegative=source.is_nonnegative)
