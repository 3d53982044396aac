"""How tiles are folded and scanned along an axis with any combine function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import BoolAttr, UnitAttr
from xdsl.ir import Block, Operation, Region

from tilewright.ir.effects import Order, Resource, own_effects
from tilewright.ir.locations import span_of
from tilewright.language.core import tensor, tuple_, unwrap
from tilewright.ops.arguments import axis_of, is_none, sequence, shown
from tilewright.ops.builder import Builder, integer_property, ir_type, require_tensor, shaped, ssa
from tilewright.ops.casting import broadcast_tensor
from tilewright.ops.reduction.ir import ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp
from tilewright.ops.shape.surface import insert_dim, reshape_to
from tilewright.support.errors import (
    CombineHasEffects,
    DtypeMismatch,
    DtypeNotAllowed,
    ShapeMismatch,
    UnpackMismatch,
)

Combine = Callable[[Builder, Sequence[tensor]], Sequence[tensor]]


# What a combine function may not touch. Assembly says only that it has some effect.
_SEEN = (Resource.GLOBAL, Resource.SHARED, Resource.CONSOLE, Resource.CONTROL)


def _combine_region(
    b: Builder, sources: Sequence[tensor], combine: Combine, end: type[Operation]
) -> Region:
    scalars = [source.dtype for source in sources] * 2
    block = Block(arg_types=[ir_type(s) for s in scalars])
    arguments = [tensor(arg, s) for arg, s in zip(block.args, scalars, strict=True)]
    with b.combining(block):
        results = combine(b, arguments)
        _require_one_for_each(results, sources)
        for result, source in zip(results, sources, strict=True):
            if result.type != source.dtype:
                raise DtypeMismatch(
                    f"the combine function returns {result.type} for an element of {source.dtype}",
                    argument="combine_fn",
                )
        b.emit(end, [ssa(r) for r in results])
    _require_no_effect(block)
    return Region(block)


def _require_one_for_each(results: Sequence[tensor], sources: Sequence[tensor]) -> None:
    """Refuse a combine function that returns more or fewer elements than it folds."""
    if len(results) != len(sources):
        raise UnpackMismatch(
            f"the combine function returns {len(results)} value(s) where {len(sources)} tile(s) "
            "are folded",
            argument="combine_fn",
            hint="return one value for each tile, as a tuple where there are several",
        )


def _require_no_effect(block: Block) -> None:
    """Refuse what a combine function does besides computing: it runs as often as it happens to."""
    for op in block.walk():
        seen = [e for e in own_effects(op) if isinstance(e, Order) or e.resource in _SEEN]
        if seen:
            span, chain = span_of(op)
            raise CombineHasEffects(
                "a combine function only computes, but this one prints, asserts or touches memory",
                span=span,
                chain=chain,
            )


def reduce_axis(
    b: Builder,
    sources: Sequence[tensor],
    axis: int,
    combine: Combine,
    is_commutative: bool = False,
) -> list[tensor]:
    """The sources folded along `axis` with `combine`, which emits on scalars.

    `is_commutative` is a promise where the compiler cannot see it in the function.
    """
    region = _combine_region(b, sources, combine, ReduceReturnOp)
    shape = sources[0].static_shape
    shape = shape[:axis] + shape[axis + 1 :]
    types = [shaped(source.dtype, shape) for source in sources]
    op = b.emit(
        ReduceOp,
        [ssa(source) for source in sources],
        [ir_type(t) for t in types],
        {"axis": integer_property(axis), **({"commutative": UnitAttr()} if is_commutative else {})},
        [region],
    )
    return [tensor(result, type_) for result, type_ in zip(op.results, types, strict=True)]


def user_combine(function: object) -> Combine:
    """A jit function of 2n scalars as a combine callback."""

    def combine(b: Builder, arguments: Sequence[tensor]) -> Sequence[tensor]:
        result = b.call_function(function, list(arguments))
        return [_returned(v) for v in (result if isinstance(result, tuple_) else [result])]

    return combine


def _returned(value: object) -> tensor:
    if isinstance(value, tensor):
        return value
    raise DtypeMismatch(
        f"the combine function returns {shown(unwrap(value))}, which is no value of the run",
        argument="combine_fn",
        hint="return what it computes of its arguments, one value for each tile",
    )


def _tile(value: object, function: str) -> tensor:
    return require_tensor(value, function, "input")


def _tiles(items: Sequence[object], function: str) -> list[tensor]:
    if not items:
        raise ShapeMismatch(f"{function}(): `input` is an empty tuple", argument="input")
    plain = [unwrap(item) for item in items]
    for item in plain:
        if not isinstance(item, tensor):
            raise DtypeNotAllowed(
                f"{function}(): `input` is a tuple that holds {shown(item)}; tiles are needed",
                argument="input",
            )
    return [_tile(item, function) for item in plain]


def tiles_to_fold(input: object, function: str) -> tuple[list[tensor], bool]:
    """The tiles that a call of `function` is given, and whether it was given a tuple of them."""
    plain = unwrap(input)
    is_tuple = isinstance(plain, tuple_ | tuple | list)
    values = _tiles(sequence(input), function) if is_tuple else [_tile(plain, function)]
    shapes = {v.static_shape for v in values}
    if len(shapes) != 1:
        raise ShapeMismatch(f"{function}(): inputs differ in shape: {sorted(shapes)}")
    if not values[0].static_shape:
        is_pointer = values[0].dtype.is_ptr()
        raise ShapeMismatch(
            f"{function}(): `input` is a scalar; a tile is needed",
            argument="input",
            hint="load a tile first: tl.load(pointer + offsets)" if is_pointer else "",
        )
    return values, is_tuple


def tile_to_fold(input: object, function: str) -> tensor:
    """The tile that a call of `function` is given, which folds one at a time."""
    tiles, _ = tiles_to_fold(input, function)
    if len(tiles) != 1:
        raise ShapeMismatch(
            f"{function}(): `input` is a tuple of {len(tiles)} tiles; one tile is needed",
            argument="input",
            hint="call it for each of them; tl.reduce and tl.associative_scan fold several at once",
        )
    return tiles[0]


def folded(
    b: Builder,
    sources: list[tensor],
    axis: object,
    keep_dims: bool,
    function: str,
    combine: Combine,
    is_commutative: bool = False,
) -> list[tensor]:
    """The sources folded along an axis as the user names it: None stands for all elements."""
    rank = len(sources[0].static_shape)
    if is_none(axis):
        flat = [reshape_to(b, s, (prod(s.static_shape),)) for s in sources]
        results = reduce_axis(b, flat, 0, combine, is_commutative)
        if keep_dims:
            results = [broadcast_tensor(b, r, (1,) * rank) for r in results]
        return results
    position = axis_of(axis, rank, function)
    results = reduce_axis(b, sources, position, combine, is_commutative)
    return [insert_dim(b, r, position) for r in results] if keep_dims else results


def scan_axis(
    b: Builder, sources: Sequence[tensor], axis: int, combine: Combine, reverse: bool
) -> list[tensor]:
    """The running folds of the sources along `axis`."""
    region = _combine_region(b, sources, combine, ScanReturnOp)
    op = b.emit(
        ScanOp,
        [ssa(source) for source in sources],
        [ir_type(source.type) for source in sources],
        {"axis": integer_property(axis), "reverse": BoolAttr.from_bool(reverse)},
        [region],
    )
    return [tensor(r, s.type) for r, s in zip(op.results, sources, strict=True)]
