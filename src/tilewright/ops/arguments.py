"""What user functions ask of their arguments: constants, shapes, axes, tensors."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.language.core import (
    DTYPE_NAMES,
    FOREIGN_DTYPES,
    MAX_TILE_ELEMS,
    dtype,
    pointer_type,
    tensor,
    tensor_descriptor,
    tuple_,
    unwrap,
)
from tilewright.support.errors import (
    AxisOutOfRange,
    DtypeNotAllowed,
    InvalidOption,
    LiteralOutOfRange,
    NotConstexpr,
    NotPowerOfTwo,
    ShapeMismatch,
    TileTooLarge,
)
from tilewright.support.tile_extents import is_tile_extent


def constant(value: object, function: str, argument: str) -> object:
    """The plain Python value of a compile-time argument, or NotConstexpr."""
    plain = unwrap(value)
    if isinstance(plain, tensor):
        raise NotConstexpr(
            f"{function}(): `{argument}` must be a compile-time constant, "
            f"but it is a runtime value of type {plain.type}",
            argument=argument,
            known_as=f"{function}'s arguments must be of type tl.constexpr",
        )
    return plain


def shown(value: object) -> str:
    """A value as messages show it: strings in quotes, functions, modules and instances in words."""
    if isinstance(value, tuple_) and value.factory is tensor_descriptor:
        return "a tensor descriptor"
    if isinstance(value, tuple_) and value.factory is not None:
        named = getattr(value.factory, "name", None)  # a NamedTuple's class, not an aggregate's
        return f"an instance of the class `{named}`" if named else f"an instance of {value.factory}"
    return repr(value) if isinstance(value, str) else str(value)


def integer_constant(value: object, function: str, argument: str) -> int:
    """A compile-time integer argument, which fits 32 bits.

    Raises: NotConstexpr, LiteralOutOfRange.
    """
    plain = constant(value, function, argument)
    if isinstance(plain, bool) or not isinstance(plain, int):
        raise NotConstexpr(
            f"{function}(): `{argument}` must be an integer constant, got {shown(plain)}",
            argument=argument,
        )
    if not -(1 << 31) <= plain < 1 << 32:
        raise LiteralOutOfRange(
            f"{function}(): `{argument}` is {plain}, which does not fit 32 bits", argument=argument
        )
    return plain


def boolean_constant(value: object, function: str, argument: str) -> bool:
    """A compile-time flag."""
    plain = constant(value, function, argument)
    if not isinstance(plain, bool | int):
        raise NotConstexpr(
            f"{function}(): `{argument}` must be True or False, got {shown(plain)}",
            argument=argument,
        )
    return bool(plain)


def choice(value: object, allowed: Sequence[object], function: str, argument: str) -> object:
    """A compile-time argument that must be one of `allowed`."""
    plain = constant(value, function, argument)
    if plain is None and "" in allowed:
        return ""
    if plain not in allowed:
        names = ", ".join(repr(a) for a in allowed)
        raise InvalidOption(
            f"{function}(): `{argument}` is {shown(plain)}; it must be one of {names}",
            argument=argument,
        )
    return plain


def sequence(value: object) -> list[object]:
    """The elements of a tuple, list or language tuple; a single value counts as one."""
    plain = unwrap(value)
    if isinstance(plain, tuple | list | tuple_):
        return list(plain)
    return [value]


def integers(values: object, function: str, argument: str) -> tuple[int, ...]:
    """A tuple of compile-time integers from one or several arguments."""
    flat = sequence(values)
    if len(flat) == 1:
        flat = sequence(flat[0])
    return tuple(integer_constant(v, function, argument) for v in flat)


def check_shape(
    shape: tuple[int, ...], function: str, argument: str, groups: int = 0
) -> tuple[int, ...]:
    """`shape` if it is a legal tile shape: powers of two, at most 2^20 elements.

    Where `groups` of warps share the products of tiles, multiples of 16 are extents, too.
    """
    numel = 1
    for index, extent in enumerate(shape):
        if not is_tile_extent(extent, groups):
            raise NotPowerOfTwo(
                f"{function}(): dimension {extent} of `{argument}` is not a power of two",
                argument=argument,
                known_as="arange's range must be a power of 2"
                if function == "arange"
                else f"Shape element {index} must be a power of 2",
            )
        numel *= extent
    if numel > MAX_TILE_ELEMS:
        raise TileTooLarge(
            f"{function}(): a tile of shape {list(shape)} has {numel} elements; "
            f"the limit is {MAX_TILE_ELEMS}",
            argument=argument,
            known_as=f"numel ({numel}) exceeds triton maximum tensor numel ({MAX_TILE_ELEMS})",
        )
    return shape


def tile_shape(
    values: object, function: str, argument: str = "shape", groups: int = 0
) -> tuple[int, ...]:
    """A legal tile shape from compile-time integers; `groups` is that of `check_shape`."""
    return check_shape(integers(values, function, argument), function, argument, groups)


def axis_of(value: object, rank: int, function: str, argument: str = "axis") -> int:
    """A compile-time axis in [-rank, rank), counted from 0."""
    axis = integer_constant(value, function, argument)
    if not -rank <= axis < rank:
        raise AxisOutOfRange(
            f"{function}(): `{argument}` is {axis} but the tile has {rank} dimension(s)",
            argument=argument,
            known_as=f"invalid axis {axis}. Expected {-rank} <= axis < {rank}",
        )
    return axis % rank


def dtype_constant(value: object, function: str, argument: str = "dtype") -> dtype:
    """A compile-time dtype of values."""
    plain = constant(value, function, argument)
    if not isinstance(plain, dtype):
        raise _no_dtype(plain, function, argument)
    if _of_memory(plain).is_void():
        raise DtypeNotAllowed(
            f"{function}(): `{argument}` is {plain}; nothing has the type void",
            argument=argument,
            hint="a pointer to bytes is tl.pointer_type(tl.int8)",
        )
    return plain


def _of_memory(type_: dtype) -> dtype:
    """What pointers of a type lead to in the end; a dtype that is no pointer itself."""
    return _of_memory(type_.element_ty) if isinstance(type_, pointer_type) else type_


def _no_dtype(given: object, function: str, argument: str) -> DtypeNotAllowed:
    """The error for what should be a dtype; NumPy's, torch's and Python's names have a remedy."""
    name = given if isinstance(given, str) else getattr(given, "name", "")
    meant = FOREIGN_DTYPES.get(name) or DTYPE_NAMES.get(name, "")
    return DtypeNotAllowed(
        f"{function}(): `{argument}` must be a dtype such as tl.float32, got {shown(given)}",
        argument=argument,
        hint=f"write tl.{meant}" if meant else "",
    )


def is_none(value: object) -> bool:
    """Whether an optional argument was left out or is None."""
    return unwrap(value) is None


def require_same_shape(lhs: tensor, rhs: tensor, function: str, names: tuple[str, str]) -> None:
    """Raise ShapeMismatch unless both tensors have one shape."""
    if lhs.static_shape != rhs.static_shape:
        raise ShapeMismatch(
            f"{function}(): `{names[0]}` has shape {list(lhs.static_shape)} "
            f"but `{names[1]}` has {list(rhs.static_shape)}",
            argument=names[1],
            types={names[0]: str(lhs.type), names[1]: str(rhs.type)},
        )
