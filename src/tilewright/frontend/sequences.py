"""Tuples, indices and what can be iterated at compile time."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.constexpr import evaluate
from tilewright.frontend.frame import Frame
from tilewright.frontend.values import describe, is_aggregate, is_constant, plain, wrap
from tilewright.language.core import constexpr, pointer_type, tensor, tuple_
from tilewright.ops.shape.surface import insert_dim
from tilewright.support.errors import (
    ConstantEvaluation,
    IndexNotSupported,
    IteratorNotSupported,
    NotConstexpr,
    UnknownAttribute,
    UnpackMismatch,
)


class PointerShape(tuple_):
    """The shape of a scalar pointer, (): an element of it was meant to be an array's size."""

    __slots__ = ()


def array_error(what: str, pointer: object) -> UnknownAttribute:
    """The error for what a kernel asks of an array argument and a pointer cannot tell."""
    return UnknownAttribute(
        f"{what}: an array argument becomes a pointer to its first element",
        types={"pointer": str(pointer.type)} if isinstance(pointer, tensor) else None,
        hint="pass the sizes and strides as arguments, for example x.shape[0] and x.stride(0)",
    )


def iterate(value: object) -> list[object]:
    """The elements of a value whose length is known at compile time.

    Raises: IteratorNotSupported.
    """
    if isinstance(value, tuple_) and not is_aggregate(value):
        return list(value.values)
    known = plain(value) if is_constant(value) else None
    if isinstance(known, tuple | list | range | str):
        return [wrap(item) for item in known]
    raise IteratorNotSupported(
        f"{describe(value)} is no tuple: cannot unpack non-iterable value",
        hint="unpack tuples only; tiles are taken apart by tl.split or by masks",
    )


def unpack(value: object, count: int) -> list[object]:
    """The elements of a tuple that is unpacked into `count` names.

    Raises: UnpackMismatch, UnknownAttribute.
    """
    if isinstance(value, PointerShape):
        raise array_error("the shape of a pointer is unpacked", value)
    if isinstance(value, tensor):
        raise UnpackMismatch(
            f"{describe(value)} cannot be unpacked",
            hint="tiles are taken apart by tl.split or by masks",
        )
    items = iterate(value)
    if len(items) != count:
        few = f"not enough values to unpack (expected {count}, got {len(items)})"
        known = few if len(items) < count else "too many values to unpack"
        raise UnpackMismatch(f"{known}: a tuple of {len(items)} is unpacked into {count} names")
    return items


def index_value(frame: Frame, value: object, index: object) -> object:
    """`value[index]` for tiles, tuples and constants."""
    if isinstance(value, tensor):
        return _index_tile(frame, value, index)
    if not is_constant(index):
        raise NotConstexpr(f"the index of {describe(value)} must be known at compile time")
    if isinstance(value, tuple_):
        return _index_tuple(value, index)
    return evaluate(lambda: plain(value)[plain(index)])  # type: ignore[index]  # errors are reported


def _index_tuple(value: tuple_, index: object) -> object:
    if isinstance(value, PointerShape):
        raise array_error("an element of `.shape` is asked of a pointer", value)
    key = plain(index)
    if isinstance(key, slice):
        return tuple_(value.values[key])
    if isinstance(key, bool) or not isinstance(key, int):
        raise IndexNotSupported(f"a tuple is indexed by an integer, not by {describe(index)}")
    if not -len(value) <= key < len(value):
        raise ConstantEvaluation(f"index {key} is out of range for a tuple of {len(value)}")
    return value.values[key]


def _index_tile(frame: Frame, value: tensor, index: object) -> tensor:
    """A tile indexed by None (a new dimension) and `:` (a dimension as it is)."""
    parts: Sequence[object] = index.values if isinstance(index, tuple_) else [index]
    rank = len(value.static_shape)
    num_full = sum(1 for part in parts if isinstance(part, slice))
    if rank == 0:
        num_full = 0  # `pointer[None, :]`: what is added is all there is
    for part in parts:
        if not (_is_new_axis(part) or (isinstance(part, slice) and part == slice(None))):
            raise _not_an_index(value, part)
    if num_full > rank:
        raise IndexNotSupported(
            f"the index has {num_full} dimensions but the tile has {rank}",
            types={"tile": str(value.type)},
        )
    for axis, part in enumerate(parts):
        if _is_new_axis(part):
            value = insert_dim(frame.builder, value, axis if rank else 0)
    return value


def _not_an_index(value: tensor, part: object) -> IndexNotSupported:
    shown = _describe_index(part)
    if isinstance(value.type, pointer_type):
        return IndexNotSupported(
            f"unsupported tensor index: a pointer cannot be indexed by {shown}",
            hint="load the element: tl.load(pointer + offset)",
        )
    return IndexNotSupported(f"unsupported tensor index: a tile cannot be indexed by {shown}")


def _is_new_axis(part: object) -> bool:
    return isinstance(part, constexpr) and part.value is None


def _describe_index(part: object) -> str:
    return "a slice with bounds" if isinstance(part, slice) else describe(part)
