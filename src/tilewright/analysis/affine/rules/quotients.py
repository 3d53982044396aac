"""What quotients, remainders and bits are: steps in groups that cross no multiple of a divisor.

Signed division rounds towards zero, so its rules ask for a dividend that is not negative. A divisor
is known to be positive, or is one number computed from arguments, the grid and what loops count,
such as the group's size in `pid % (group * n) // size`: of those it is asked for (docs/limits.md).
One that is loaded, or differs from element to element, is not taken to be.
"""

from __future__ import annotations

from math import gcd

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.along import AT_REST, Along, Wrap, in_groups
from tilewright.analysis.affine.expression import ONE, ZERO
from tilewright.analysis.affine.rules.table import (
    RULES,
    Tiles,
    equal_dims,
    of_both,
    where_equal,
)
from tilewright.analysis.affine.tile import AffineTile, constant_tile, kind_of, made, power_of_two
from tilewright.analysis.launch_scalars import is_of_geometry
from tilewright.analysis.strides import power_divided_by
from tilewright.ir.types import shape_of
from tilewright.ops.creation.ir import splatted
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.support.powers_of_two import is_power_of_two


def _unbroken_run(dividend: AffineTile, divisor: AffineTile, dim: int) -> int:
    """The length of groups in which a run crosses no multiple of the divisor."""
    run = min(dividend.aligned_run(dim), divisor.divisor)
    return gcd(run, divisor.dims[dim].equal())


@RULES.register(ELEMENTWISE["arith.divsi"], ELEMENTWISE["arith.divui"])
def _quotient(tiles: Tiles, op: Operation) -> AffineTile:
    left, right = map(tiles, op.operands)
    if right.constant == 1:
        return left
    is_unsigned = op.name == "arith.divui"
    return _quotient_of(op, left, right, is_unsigned or left.is_nonnegative)


@RULES.register(ELEMENTWISE["arith.shrsi"], ELEMENTWISE["arith.shrui"])
def _right_shift(tiles: Tiles, op: Operation) -> AffineTile:
    left, right = map(tiles, op.operands)
    power = power_divided_by(op, right.constant)
    if right.constant == 0:
        return left
    if power is None:
        return where_equal(tiles, op)
    return _quotient_of(op, left, constant_tile(right.kind, power), True)


def _quotient_of(
    op: Operation, left: AffineTile, right: AffineTile, rounds_down: bool
) -> AffineTile:
    kind = kind_of(op.results[0].type)
    dims = equal_dims(kind, (left, right))
    if rounds_down:
        runs = (_unbroken_run(left, right, d) for d in range(len(dims)))
        pairs = zip(dims, runs, kind.shape, strict=True)
        dims = [in_groups(run, n) if run > along.equal() else along for along, run, n in pairs]
    by = right.constant
    is_exact = by is not None and is_power_of_two(by)
    quotient = left.divisor // by if is_exact and by is not None else 1
    is_nonnegative = left.is_nonnegative and _is_positive(op.operands[1], right)
    return made(kind, dims, None, max(1, quotient), is_nonnegative=is_nonnegative)


def _is_positive(divisor: SSAValue, known: AffineTile) -> bool:
    """Whether a divisor, which is never 0, is known or promised to be positive."""
    if known.is_nonnegative or known.constant is not None:
        return known.is_nonnegative
    scalar = splatted(divisor) or divisor
    return not shape_of(scalar.type) and is_of_geometry(scalar)


@RULES.register(ELEMENTWISE["arith.remsi"], ELEMENTWISE["arith.remui"])
def _remainder(tiles: Tiles, op: Operation) -> AffineTile:
    left, right = map(tiles, op.operands)
    is_signed = op.name == "arith.remsi"
    dims = _wrapped_dims(tiles, op, left, right, is_signed)
    return _remainder_of(
        left, right, dims, not is_signed or left.is_nonnegative, left.is_nonnegative
    )


def _wrapped_dims(
    tiles: Tiles, op: Operation, value: AffineTile, bound: AffineTile, is_signed: bool
) -> list[Along]:
    """x % m with constant m: x wraps where it moves; general where it jumps already.

    An unsigned remainder of what may be negative, as a signed number, starts anywhere.
    """
    modulus = bound.uniform()
    if modulus is None:
        return equal_dims(value.kind, (value, bound))
    dims = [_jumping(along) for along in value.dims]
    moving = [d for d, along in enumerate(value.dims) if not along.is_still()]
    start = value.start()
    if start is None or not is_signed or len(moving) != 1 or not value.dims[moving[0]].is_linear():
        return dims
    (dim,) = moving
    stride = value.dims[dim].stride
    assert stride is not None
    wrap = Along(dims[dim].stride, ZERO, Wrap(start, stride.value, modulus, ONE))
    return [wrap if d == dim else AT_REST for d in range(len(dims))]


def _jumping(along: Along) -> Along:
    """The stride but for jumps; where it jumps already, jumps of two kinds could cancel."""
    stride = along.stride
    return Along(None if stride is None or stride.jumps else stride.with_jumps(), None)


def _remainder_of(
    left: AffineTile, right: AffineTile, dims: list[Along], rounds_down: bool, is_nonnegative: bool
) -> AffineTile:
    """A remainder of dimensions `dims`, to which the groups that are known are added."""
    dims = [_with_group(left, right, d, along, rounds_down) for d, along in enumerate(dims)]
    rest = ZERO if any(isinstance(along.form, Wrap) for along in dims) else None
    bound = right.divisor
    return made(
        left.kind,
        dims,
        rest,
        lambda d, run: min(left.divisor_at(d, run), bound),
        is_nonnegative=is_nonnegative,
    )


def _with_group(
    left: AffineTile, right: AffineTile, dim: int, along: Along, rounds_down: bool
) -> Along:
    run = _unbroken_run(left, right, dim) if rounds_down else 1
    if run > 1 and not along.is_still():
        return along.grouped(ONE, run)
    return along.grouped(ZERO, gcd(left.dims[dim].equal(), right.dims[dim].equal()))


@RULES.register(ELEMENTWISE["arith.andi"])
def _and(tiles: Tiles, op: Operation) -> AffineTile:
    """With low bits a remainder, with high bits a rounding down; else just bits."""
    left, right = map(tiles, op.operands)
    if left.constant is not None:
        left, right = right, left
    is_nonnegative = left.is_nonnegative or right.is_nonnegative
    bits, kind = right.constant, kind_of(op.results[0].type)
    power = power_divided_by(op, bits)
    dims = equal_dims(kind, (left, right))
    if power is not None:
        divisor = constant_tile(kind, power)
        return _remainder_of(left, divisor, dims, True, is_nonnegative)
    if bits is not None and bits < 0 and -bits == power_of_two(bits):
        runs = [min(left.aligned_run(d), -bits) for d in range(len(dims))]
        pairs = zip(dims, runs, kind.shape, strict=True)
        dims = [in_groups(run, n) if run > along.equal() else along for along, run, n in pairs]
    divisor = max(left.divisor, right.divisor)
    return made(kind, dims, None, divisor, is_nonnegative=is_nonnegative)


@RULES.register(ELEMENTWISE["arith.ori"], ELEMENTWISE["arith.xori"])
def _or(tiles: Tiles, op: Operation) -> AffineTile:
    """A run goes on where the bits of the other side are those of multiples of its length."""
    left, right = map(tiles, op.operands)
    kind = kind_of(op.results[0].type)
    dims = equal_dims(kind, (left, right))
    for dim, extent in enumerate(kind.shape):
        run = max(_unbroken_run(left, right, dim), _unbroken_run(right, left, dim))
        if run > 1:
            dims[dim] = in_groups(run, extent, ONE)
    return of_both(kind, left, right, dims)
