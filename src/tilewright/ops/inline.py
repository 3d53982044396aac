"""User functions that apply foreign code or a scalar function to each element."""

from __future__ import annotations

from tilewright.language.core import tensor, tuple_, unwrap
from tilewright.ops.arguments import integer_constant
from tilewright.ops.builder import Builder
from tilewright.ops.casting import broadcast_shapes, broadcast_tensor, to_tensor
from tilewright.ops.surface import surface
from tilewright.support.errors import (
    CompileError,
    ConditionNotScalar,
    ShapeMismatch,
    UnsupportedError,
)


@surface()
def map_elementwise(b: Builder, scalar_fn: object, *args: object, pack: object = 1) -> object:
    """scalar_fn(args[0][i], args[1][i], …) for each index i: a tile or a tuple of tiles.

    `scalar_fn` is a jit function of scalars that returns scalars, applied to whole tiles at once.
    Shapes: `args` broadcast together.
    Constraints: no branch or loop of `scalar_fn` depends on its arguments; `pack` is 1.
    Raises: ShapeMismatch, UnsupportedError.
    """
    if integer_constant(pack, "map_elementwise", "pack") != 1:
        raise UnsupportedError(
            "map_elementwise(): only `pack=1` is supported",
            argument="pack",
            hint="write the function for one element",
        )
    if not args:
        raise CompileError("map_elementwise(): a function needs at least one tile to run over")
    tiles = [to_tensor(b, arg) for arg in args]
    shape: tuple[int, ...] = ()
    for tile in tiles:
        shape = broadcast_shapes(shape, tile.static_shape)
    tiles = [broadcast_tensor(b, tile, shape) for tile in tiles]
    try:
        result = b.call_function(unwrap(scalar_fn), tiles)
    except ConditionNotScalar as error:
        raise UnsupportedError(
            "map_elementwise(): a branch of the function depends on an element",
            argument="scalar_fn",
            hint="choose between values with tl.where instead of `if`",
        ) from error
    if isinstance(result, tuple_):
        return tuple_([_spread(b, value, shape) for value in result])
    return _spread(b, result, shape)


def _spread(b: Builder, value: object, shape: tuple[int, ...]) -> tensor:
    """A result of the function as a tile: a constant repeats."""
    x = to_tensor(b, value)
    if x.static_shape not in ((), shape):
        raise ShapeMismatch(
            f"map_elementwise(): the function returns {x.type} for one element",
            argument="scalar_fn",
        )
    return broadcast_tensor(b, x, shape)


@surface()
def inline_asm_elementwise(
    b: Builder,
    asm: object,
    constraints: object,
    args: object,
    dtype: object,
    is_pure: object,
    pack: object,
) -> object:
    """Assembly of the GPU applied to each element; unsupported, for tiles have no assembly.

    Raises: UnsupportedError.
    """
    raise UnsupportedError(
        "inline_asm_elementwise(): assembly is written for one GPU and cannot run here",
        hint="write the computation with functions of the language",
    )


@surface()
def extern_elementwise(
    b: Builder,
    lib_name: object,
    lib_path: object,
    args: object,
    arg_type_symbol_dict: object,
    is_pure: object,
) -> object:
    """A function of a bitcode library applied to each element; unsupported.

    Raises: UnsupportedError.
    """
    raise UnsupportedError(
        "extern_elementwise(): functions of bitcode libraries cannot be called here",
        hint="use tl.extra.libdevice, which needs no library",
    )
