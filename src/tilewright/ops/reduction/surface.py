"""User functions of reductions and scans."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.language.core import dtype, float32, int32, tensor, tuple_, uint32, unwrap
from tilewright.ops.arguments import axis_of, boolean_constant, dtype_constant, is_none
from tilewright.ops.builder import Builder
from tilewright.ops.casting import broadcast_tensor, convert
from tilewright.ops.creation.surface import arange
from tilewright.ops.elementwise.operators import binary, elementwise
from tilewright.ops.elementwise.surface import extremum, select
from tilewright.ops.reduction.folds import (
    Combine,
    folded,
    scan_axis,
    tile_to_fold,
    tiles_to_fold,
    user_combine,
)
from tilewright.ops.shape.surface import insert_dim, reshape_to
from tilewright.ops.surface import surface
from tilewright.support.errors import DtypeNotAllowed


@surface(member=True)
def reduce(
    b: Builder, input: object, axis: object, combine_fn: object, keep_dims: object = False
) -> object:
    """`input` (a tile or a tuple of tiles) folded along `axis` with `combine_fn`.

    `combine_fn` is a jit function of scalars: n accumulated, n new → n. It must be associative;
    unless it commutes too, elements are combined in the order of the axis. `axis=None` folds all
    elements, in row-major order, to scalars.
    Raises: CombineHasEffects where `combine_fn` prints, asserts or touches memory.
    """
    sources, is_tuple = tiles_to_fold(input, "reduce")
    keep = boolean_constant(keep_dims, "reduce", "keep_dims")
    results = folded(b, sources, axis, keep, "reduce", user_combine(unwrap(combine_fn)))
    return tuple_(results) if is_tuple else results[0]


def sum_dtype(source: dtype) -> dtype:
    """The dtype in which sums of `source` are formed: integers widen to 32 bits."""
    if source.is_int() and source.primitive_bitwidth < 32:
        return int32 if source.is_int_signed() else uint32
    return source


def accumulation_dtype(type_: dtype) -> dtype:
    """The dtype in which sums and products of elements of `type_` are accumulated.

    Floats under 32 bits would lose what is small beside the running sum.
    """
    is_narrow = type_.is_floating() and type_.primitive_bitwidth < 32
    return float32 if is_narrow else type_


def _summand(b: Builder, input: object, function: str, to: object) -> tensor:
    """The tile to add up, in the dtype of the result."""
    source = tile_to_fold(input, function)
    target = sum_dtype(source.dtype)
    if not is_none(to):
        target = dtype_constant(to, function).scalar
    return convert(b, source, target)


def _total(
    b: Builder, source: tensor, axis: object, keep: bool, function: str, operator: str
) -> tensor:
    """The fold of `source` with an operator, accumulated wide and rounded at the end."""
    wide = convert(b, source, accumulation_dtype(source.dtype))
    total = folded(b, [wide], axis, keep, function, _operator_combine(operator))[0]
    return convert(b, total, source.dtype)


def _operator_combine(operator: str) -> Combine:
    return lambda b, args: [binary(b, operator, args[0], args[1])]


@surface(member=True)
def sum(
    b: Builder,
    input: object,
    axis: object = None,
    keep_dims: object = False,
    dtype: object = None,
) -> tensor:
    """The sum along `axis`, or of all elements.

    Dtypes: integers under 32 bits widen to int32 or uint32; floats keep theirs, those under 32
    bits are added up in fp32 and rounded at the end; `dtype` sets it.
    """
    source = _summand(b, input, "sum", dtype)
    keep = boolean_constant(keep_dims, "sum", "keep_dims")
    return _total(b, source, axis, keep, "sum", "Add")


@surface(member=True)
def xor_sum(b: Builder, input: object, axis: object = None, keep_dims: object = False) -> tensor:
    """The exclusive or of integers along `axis`, or of all elements."""
    source = tile_to_fold(input, "xor_sum")
    if not source.dtype.is_int():
        raise DtypeNotAllowed(f"xor_sum(): `input` is {source.dtype}; integers are needed")
    keep = boolean_constant(keep_dims, "xor_sum", "keep_dims")
    return folded(b, [source], axis, keep, "xor_sum", _operator_combine("BitXor"))[0]


@surface(member=True)
def reduce_or(b: Builder, input: object, axis: object, keep_dims: object = False) -> tensor:
    """The bitwise or of integers along `axis`."""
    source = tile_to_fold(input, "reduce_or")
    if not source.dtype.is_int():
        raise DtypeNotAllowed(f"reduce_or(): `input` is {source.dtype}; integers are needed")
    keep = boolean_constant(keep_dims, "reduce_or", "keep_dims")
    return folded(b, [source], axis, keep, "reduce_or", _operator_combine("BitOr"))[0]


def _extremum_combine(name: str) -> Combine:
    return lambda b, args: [extremum(b, name, args[0], args[1], False)]


def _indexed_combine(name: str, prefers_left: bool) -> Combine:
    """The better of two elements with its position, in whatever order elements are folded.

    NaN is worse than every number. Of equal elements, two NaNs included, the position decides.
    """
    better_than, not_worse_than = ("Gt", "GtE") if name == "maximum" else ("Lt", "LtE")
    before = "Lt" if prefers_left else "Gt"

    def combine(b: Builder, args: Sequence[tensor]) -> Sequence[tensor]:
        value, index, other, other_index = args
        is_better = binary(b, better_than, value, other)
        is_tied = binary(b, not_worse_than, value, other)
        if value.dtype.is_floating():
            other_is_nan = binary(b, "NotEq", other, other)
            is_number = binary(b, "Eq", value, value)
            wins = elementwise(b, "arith.andi", is_number, other_is_nan)
            is_better = elementwise(b, "arith.ori", is_better, wins)
            is_tied = elementwise(b, "arith.ori", is_tied, other_is_nan)
        is_before = binary(b, before, index, other_index)
        is_tied = elementwise(b, "arith.andi", is_tied, is_before)
        is_chosen = elementwise(b, "arith.ori", is_better, is_tied)
        return [
            select(b, is_chosen, value, other),
            select(b, is_chosen, index, other_index),
        ]

    return combine


def _with_indices(
    b: Builder, source: tensor, axis: object, keep: bool, name: str, prefers_left: bool
) -> list[tensor]:
    shape = source.static_shape
    if is_none(axis):
        source = reshape_to(b, source, (prod(shape),))
        shape = source.static_shape
        position = 0
    else:
        position = axis_of(axis, len(shape), name)
    indices = arange(b, 0, shape[position])
    for dim in range(len(shape)):
        if dim != position:
            indices = insert_dim(b, indices, dim)
    indices = broadcast_tensor(b, indices, shape)
    combine = _indexed_combine(name, prefers_left)
    # Comparisons of narrow floats are made in fp32: widened once, not at each of them.
    wide = convert(b, source, accumulation_dtype(source.dtype))
    value, index = folded(b, [wide, indices], position, keep, name, combine, True)
    return [convert(b, value, source.dtype), index]


def _extremum_fold(
    b: Builder,
    name: str,
    input: object,
    axis: object,
    return_indices: object,
    tie_break_left: object,
    keep_dims: object,
) -> object:
    short = "max" if name == "maximum" else "min"
    source = tile_to_fold(input, short)
    keep = boolean_constant(keep_dims, short, "keep_dims")
    if boolean_constant(return_indices, short, "return_indices"):
        left = boolean_constant(tie_break_left, short, "return_indices_tie_break_left")
        return tuple_(_with_indices(b, source, axis, keep, name, left))
    if source.dtype.primitive_bitwidth < 32:
        source = convert(b, source, float32 if source.dtype.is_floating() else int32)
    return folded(b, [source], axis, keep, short, _extremum_combine(name))[0]


@surface(member=True)
def max(
    b: Builder,
    input: object,
    axis: object = None,
    return_indices: object = False,
    return_indices_tie_break_left: object = True,
    keep_dims: object = False,
) -> object:
    """The greatest element along `axis`, with its int32 position if `return_indices`.

    Dtypes: integers under 32 bits widen to int32, fp16 and bf16 to fp32; with indices the dtype
    stays. NaN loses against every number, so the result is NaN only where all elements are.
    Of equal elements (all NaN too) the position is the first, or the last with
    `return_indices_tie_break_left=False`; it does not depend on the order of folding.
    """
    return _extremum_fold(
        b, "maximum", input, axis, return_indices, return_indices_tie_break_left, keep_dims
    )


@surface(member=True)
def min(
    b: Builder,
    input: object,
    axis: object = None,
    return_indices: object = False,
    return_indices_tie_break_left: object = True,
    keep_dims: object = False,
) -> object:
    """The least element along `axis`, with its int32 position if `return_indices`.

    Dtypes, NaN and ties are those of `max`.
    """
    return _extremum_fold(
        b, "minimum", input, axis, return_indices, return_indices_tie_break_left, keep_dims
    )


def _position_of(
    b: Builder, name: str, input: object, axis: object, tie_break_left: object, keep_dims: object
) -> tensor:
    function = "argmax" if name == "maximum" else "argmin"
    source = tile_to_fold(input, function)
    keep = boolean_constant(keep_dims, function, "keep_dims")
    left = boolean_constant(tie_break_left, function, "tie_break_left")
    return _with_indices(b, source, axis, keep, name, left)[1]


@surface(member=True)
def argmax(
    b: Builder,
    input: object,
    axis: object,
    tie_break_left: object = True,
    keep_dims: object = False,
) -> tensor:
    """The int32 position of the greatest element along `axis`.

    NaN loses against every number. Of equal elements (all NaN too) it is the first one, or the
    last with `tie_break_left=False`.
    """
    return _position_of(b, "maximum", input, axis, tie_break_left, keep_dims)


@surface(member=True)
def argmin(
    b: Builder,
    input: object,
    axis: object,
    tie_break_left: object = True,
    keep_dims: object = False,
) -> tensor:
    """The int32 position of the least element along `axis`; NaN and ties as in `argmax`."""
    return _position_of(b, "minimum", input, axis, tie_break_left, keep_dims)


@surface(member=True)
def associative_scan(
    b: Builder, input: object, axis: object, combine_fn: object, reverse: object = False
) -> object:
    """result[i] = input[0] ⊕ … ⊕ input[i] along `axis`, for a tile or a tuple of tiles.

    `combine_fn` is a jit function of scalars as in `reduce`, and computes in the dtypes that it
    says; rounding errors grow with the depth of a tree, not with the length. `reverse` starts at
    the end.
    """
    sources, is_tuple = tiles_to_fold(input, "associative_scan")
    position = axis_of(axis, len(sources[0].static_shape), "associative_scan")
    backwards = boolean_constant(reverse, "associative_scan", "reverse")
    combine = user_combine(unwrap(combine_fn))
    results = scan_axis(b, sources, position, combine, backwards)
    return tuple_(results) if is_tuple else results[0]


def _running(
    b: Builder,
    function: str,
    operator: str,
    input: object,
    axis: object,
    reverse: object,
    to: object,
) -> tensor:
    source = _summand(b, input, function, to)
    position = axis_of(axis, len(source.static_shape), function)
    backwards = boolean_constant(reverse, function, "reverse")
    wide = convert(b, source, accumulation_dtype(source.dtype))
    running = scan_axis(b, [wide], position, _operator_combine(operator), backwards)[0]
    return convert(b, running, source.dtype)


@surface(member=True)
def cumsum(
    b: Builder, input: object, axis: object = 0, reverse: object = False, dtype: object = None
) -> tensor:
    """The running sum along `axis`; dtypes as in `sum`: every result is rounded once."""
    return _running(b, "cumsum", "Add", input, axis, reverse, dtype)


@surface(member=True)
def cumprod(
    b: Builder, input: object, axis: object = 0, reverse: object = False, dtype: object = None
) -> tensor:
    """The running product along `axis`; dtypes as in `cumsum`."""
    return _running(b, "cumprod", "Mult", input, axis, reverse, dtype)


@surface(member=True)
def softmax(
    b: Builder,
    x: object,
    dim: object = None,
    keep_dims: object = None,
    ieee_rounding: object = False,
) -> tensor:
    """exp(x - max(x)) / sum(exp(x - max(x))) along `dim`, dimension 0 by default.

    Raises: DtypeNotAllowed for integers.
    """
    source = tile_to_fold(x, "softmax")
    if not source.dtype.is_floating():
        raise DtypeNotAllowed(
            f"softmax(): `x` is {source.dtype}; floats are needed",
            argument="x",
            hint="convert it first: x.to(tl.float32)",
        )
    rank = len(source.static_shape)
    axis = 0 if is_none(dim) else axis_of(dim, rank, "softmax", "dim")
    boolean_constant(ieee_rounding, "softmax", "ieee_rounding")
    greatest = folded(b, [source], axis, True, "softmax", _extremum_combine("maximum"))[0]
    exponentials = elementwise(b, "math.exp", binary(b, "Sub", source, greatest))
    total = _total(b, exponentials, axis, True, "softmax", "Add")
    return binary(b, "Div", exponentials, total)
