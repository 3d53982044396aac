"""`triton._utils`: values at paths in nested tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from tilewright.language.core import DTYPE_BY_SHORT_NAME
from tilewright.support.powers_of_two import is_power_of_two

IndexPath = tuple[int, ...]


def get_iterable_path(iterable: Sequence[object], path: IndexPath) -> object:
    """The value at a path of indices."""
    for index in path[:-1]:
        iterable = cast("Sequence[Sequence[object]]", iterable)[index]
    return iterable[path[-1]] if path else iterable


def find_paths_if(
    iterable: Sequence[object] | object, pred: Callable[[IndexPath, object], bool]
) -> list[IndexPath]:
    """The paths of all values in nested tuples and lists for which `pred(path, value)` holds."""
    found: dict[IndexPath, None] = {}

    def visit(path: IndexPath, value: object) -> None:
        if isinstance(value, tuple | list):
            for index, item in enumerate(cast("Sequence[object]", value)):
                visit((*path, index), item)
        elif pred(path, value):
            found[path] = None

    visit((), iterable)
    return list(found)


def _type_names() -> dict[str, str]:
    names = {name: type_.short_name() for name, type_ in DTYPE_BY_SHORT_NAME.items()}
    spelled = {"bool": "i1", "half": "fp16", "float": "fp32", "double": "fp64"}
    floats = {f"float{width}": f"fp{width}" for width in (16, 32, 64)}
    return {**names, **spelled, **floats, "bfloat16": "bf16", "u1": "u1", "uint1": "u1"}


# What a type is called in signatures, by every name that it goes by.
type_canonicalisation_dict = _type_names()


def canonicalize_dtype(dtype: object) -> str:
    """The name in signatures of a dtype, which may be one of torch or NumPy. Raises: `KeyError`."""
    return type_canonicalisation_dict[str(dtype).rpartition(".")[2]]


def canonicalize_ptr_dtype(dtype: object, is_const: bool) -> str:
    """The name in signatures of a pointer to elements of a dtype."""
    return f"{'*k' if is_const else '*'}{canonicalize_dtype(dtype)}"


def validate_block_shape(shape: Sequence[int]) -> int:
    """The number of elements of a tile. Raises: `TypeError`, `ValueError`."""
    numel = 1
    for index, extent in enumerate(shape):
        if type(extent) is not int:
            raise TypeError(f"Shape element {index} is {extent!r}, not a constexpr int")
        if not is_power_of_two(extent):
            raise ValueError(f"Shape element {index} must be a power of 2")
        numel *= extent
    return numel
