"""User functions that apply foreign code and scalar functions to each element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute

from tilewright.language.core import dtype, is_power_of_two, tensor, tuple_, unwrap
from tilewright.ops.arguments import (
    boolean_constant,
    constant,
    dtype_constant,
    integer_constant,
    sequence,
    shown,
)
from tilewright.ops.builder import Builder, integer_property, ir_type, require_tensor, shaped, ssa
from tilewright.ops.casting import broadcast_shapes, broadcast_tensor, convert, to_tensor
from tilewright.ops.elementwise.operators import meet
from tilewright.ops.extern.ir import EXTERNS, ExternElementwiseOp
from tilewright.ops.inline.ir import InlineAsmOp
from tilewright.ops.shape.surface import join, reshape_to, split
from tilewright.ops.surface import surface
from tilewright.support.errors import (
    CompileError,
    DtypeNotAllowed,
    InvalidOption,
    NotConstexpr,
    ShapeMismatch,
    UnsupportedError,
)


@surface()
def map_elementwise(b: Builder, scalar_fn: object, *args: object, pack: object = 1) -> object:
    """scalar_fn(args[0][i], args[1][i], …) for each index i: a tile, or a tuple of tiles.

    `scalar_fn` is a jit function of scalars that returns one scalar or a tuple of them. It may
    branch and loop on its arguments: each element takes its own path. With `pack` p it takes p
    neighbouring elements of each argument and returns p elements of each result, in the order
    (a[i], a[i + 1], …, b[i], …), and the result is a tuple.
    Shapes: `args` broadcast together; `pack` is a power of two that divides the last dimension.
    Constraints: branches on an element touch no memory.
    Raises: ShapeMismatch, InvalidOption, UnsupportedError.
    """
    if not args:
        raise CompileError("map_elementwise(): a function needs at least one tile to run over")
    tiles, shape = _broadcast(b, args)
    count = _pack(pack, shape)
    parts = [part for x in tiles for part in _unpacked(b, x, count)]
    lanes = parts[0].static_shape
    with b.mapping(lanes or None, None):
        result = b.call_function(unwrap(scalar_fn), parts)
    values = list(result.values) if isinstance(result, tuple_) else [result]
    if len(values) % count:
        raise ShapeMismatch(
            f"map_elementwise(): the function returns {len(values)} value(s), which is no multiple "
            f"of pack={count}",
            argument="scalar_fn",
        )
    spread = [_spread(b, value, lanes) for value in values]
    if not isinstance(result, tuple_):
        return spread[0]
    groups = [spread[k : k + count] for k in range(0, len(spread), count)]
    return tuple_([_packed(b, group, shape) for group in groups])


def _pack(pack: object, shape: tuple[int, ...]) -> int:
    count = integer_constant(pack, "map_elementwise", "pack")
    last = shape[-1] if shape else 1
    if not is_power_of_two(count) or last % count:
        raise InvalidOption(
            f"map_elementwise(): `pack` is {count}; it must be a power of two that divides the "
            f"last dimension of {list(shape)}",
            argument="pack",
        )
    return count


def _unpacked(b: Builder, x: tensor, count: int) -> list[tensor]:
    """`count` tiles of which tile k has every element k, k + count, … of the last dimension."""
    if count == 1:
        return [x]
    *leading, last = x.static_shape
    halves = split(b, reshape_to(b, x, (*leading, last // 2, 2))).values
    first, second = (_unpacked(b, require_tensor(h, "split", "a"), count // 2) for h in halves)
    return [part for pair in zip(first, second, strict=True) for part in pair]


def _packed(b: Builder, parts: list[tensor], shape: tuple[int, ...]) -> tensor:
    """The inverse of `_unpacked`."""
    if len(parts) == 1:
        return parts[0]
    half = (*shape[:-1], shape[-1] // 2)
    even, odd = _packed(b, parts[::2], half), _packed(b, parts[1::2], half)
    return reshape_to(b, join(b, even, odd), shape)


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
    """Assembly applied element by element: a tile, or a tuple of tiles for a tuple of dtypes.

    `asm` names its operands `$0`, `$1`, …, outputs first; `constraints` are LLVM's, such as
    "=r,r,r". One execution takes `pack` elements of each argument; elements under 32 bits share
    registers. Not pure assembly runs once for each element, in program order.
    Shapes: `args` broadcast together.
    Constraints: NVIDIA targets only, for the assembly is theirs.
    Raises: NotConstexpr, InvalidOption; UnsupportedError on other targets.
    """
    name = "inline_asm_elementwise"
    texts = [_text(asm, name, "asm"), _text(constraints, name, "constraints")]
    tiles, shape = _broadcast(b, sequence(args))
    types = [dtype_constant(t, name) for t in sequence(dtype)]
    count = integer_constant(pack, name, "pack")
    if count < 1:
        raise InvalidOption(f"{name}(): `pack` is {count}; it must be positive", argument="pack")
    properties: dict[str, Attribute] = {
        "asm_string": StringAttr(texts[0]),
        "constraints": StringAttr(texts[1]),
        "pure": IntegerAttr.from_bool(boolean_constant(is_pure, name, "is_pure")),
        "packed_element": integer_property(count),
    }
    results = [shaped(t.scalar, shape) for t in types]
    types_ir = [ir_type(t) for t in results]
    op = b.emit(InlineAsmOp, [ssa(x) for x in tiles], types_ir, properties)
    made = [tensor(value, t) for value, t in zip(op.results, results, strict=True)]
    return tuple_(made) if isinstance(unwrap(dtype), tuple | list | tuple_) else made[0]


def _text(value: object, function: str, argument: str) -> str:
    plain = constant(value, function, argument)
    if not isinstance(plain, str):
        raise NotConstexpr(f"{function}(): `{argument}` must be a string", argument=argument)
    return plain


def _broadcast(b: Builder, args: Sequence[object]) -> tuple[list[tensor], tuple[int, ...]]:
    """The arguments as tiles of one shape."""
    tiles = [to_tensor(b, arg) for arg in args]
    shape: tuple[int, ...] = ()
    for tile in tiles:
        shape = broadcast_shapes(shape, tile.static_shape)
    return [broadcast_tensor(b, tile, shape) for tile in tiles], shape


@surface()
def extern_elementwise(
    b: Builder,
    lib_name: object,
    lib_path: object,
    args: object,
    arg_type_symbol_dict: object,
    is_pure: object,
) -> tensor:
    """The library function that `arg_type_symbol_dict` gives for the arguments' dtypes.

    The dictionary maps tuples of dtypes to (symbol, result dtype); arguments are promoted
    together where it has no entry for them as they are. No library is opened: the functions of
    NVIDIA's libdevice (`__nv_…`) are implemented here, on every target.
    Shapes: `args` broadcast together.
    Raises: DtypeNotAllowed when no entry fits; UnsupportedError for other symbols.
    """
    name = "extern_elementwise"
    tiles, shape = _broadcast(b, sequence(args))
    table = constant(arg_type_symbol_dict, name, "arg_type_symbol_dict")
    if not isinstance(table, Mapping):
        raise DtypeNotAllowed(
            f"{name}(): `arg_type_symbol_dict` must be a dictionary, got {shown(table)}",
            argument="arg_type_symbol_dict",
            hint="map tuples of dtypes to a symbol and the dtype of its result",
        )
    symbol, result, tiles = _entry(b, table, tiles)
    if symbol not in EXTERNS:
        raise UnsupportedError(
            f"{name}(): the function `{symbol}` of a bitcode library cannot be called",
            argument="arg_type_symbol_dict",
            hint="functions of NVIDIA's libdevice work under their symbols (`__nv_…`), and under "
            "their names in tl.extra.libdevice",
        )
    properties: dict[str, Attribute] = {
        "libname": StringAttr(str(unwrap(lib_name))),
        "libpath": StringAttr(str(unwrap(lib_path))),
        "symbol": StringAttr(symbol),
        "pure": IntegerAttr.from_bool(boolean_constant(is_pure, name, "is_pure")),
    }
    return b.tensor(ExternElementwiseOp, tiles, shaped(result, shape), properties)


def _entry(
    b: Builder, table: Mapping[object, object], tiles: list[tensor]
) -> tuple[str, dtype, list[tensor]]:
    """The symbol and result dtype for the tiles, which may be promoted to one dtype."""
    found = table.get(tuple(tile.dtype for tile in tiles))
    if found is None:
        common = tiles[0]
        for tile in tiles[1:]:
            common, _ = meet(b, common, tile)
        tiles = [convert(b, tile, common.dtype) for tile in tiles]
        found = table.get((common.dtype,) * len(tiles))
    if not (isinstance(found, tuple | list) and len(found) == 2):
        given = ", ".join(str(tile.dtype) for tile in tiles)
        raise DtypeNotAllowed(
            f"extern_elementwise(): there is no function for ({given})",
            argument="arg_type_symbol_dict",
        )
    symbol, result = found
    return str(symbol), dtype_constant(result, "extern_elementwise", "result dtype"), tiles
