"""The values and types of the language: dtypes, constexprs, tiles, tuples.

What a kernel's author sees as `tl.tensor` is a *tile*: an immutable value with a static shape
and dtype. Nothing here knows the IR; `tensor.handle` is whatever the frontend put there.
"""

from __future__ import annotations

from enum import Enum

from tilewright.language.dtypes import dtype
from tilewright.language.tuples import tuple_, unwrap
from tilewright.language.types import (
    DTYPE_BY_SHORT_NAME,
    DTYPE_NAMES,
    DTYPES,
    FOREIGN_DTYPES,
    bfloat16,
    block_type,
    constexpr_type,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    str_to_ty,
    tensor_descriptor_type,
    tile_text,
    tuple_type,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from tilewright.language.values import constexpr, tensor

__all__ = [
    "DTYPES",
    "DTYPE_BY_SHORT_NAME",
    "DTYPE_NAMES",
    "FOREIGN_DTYPES",
    "MAX_TILE_ELEMS",
    "PropagateNan",
    "bfloat16",
    "block_type",
    "const",
    "constexpr",
    "constexpr_type",
    "dtype",
    "float8e4b8",
    "float8e4b15",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "float16",
    "float32",
    "float64",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_power_of_two",
    "pi32_t",
    "pointer_type",
    "str_to_ty",
    "tensor",
    "tensor_descriptor",
    "tensor_descriptor_type",
    "tile_text",
    "tuple_",
    "tuple_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unwrap",
    "void",
]

MAX_TILE_ELEMS = 1 << 20


class const:
    """An annotation for pointer parameters that the kernel only reads."""


class tensor_descriptor:
    """The class of tensor descriptors, for annotations.

    In a kernel a descriptor is a `tuple_` with this class as factory; see
    ops/descriptors/surface.py.
    """


class PropagateNan(Enum):
    """What minimum, maximum and clamp do with NaN: ignore it (NONE) or give NaN (ALL)."""

    NONE = 0
    ALL = 0xFFFF


def is_power_of_two(value: int) -> bool:
    """Whether `value` is a power of two (1 included)."""
    return value > 0 and value & (value - 1) == 0
