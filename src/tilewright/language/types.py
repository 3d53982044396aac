"""The types of the language: every element type, pointers, tiles, descriptors, tuples."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex, cast

from tilewright.language.dtypes import PUBLIC_NAMES, dtype
from tilewright.language.tuples import tuple_, unwrap

void = dtype("void")
int1, int8, int16, int32, int64 = (dtype(f"int{w}") for w in (1, 8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{w}") for w in (8, 16, 32, 64))
float8e5, float8e5b16 = dtype("fp8e5"), dtype("fp8e5b16")
float8e4nv, float8e4b8, float8e4b15 = dtype("fp8e4nv"), dtype("fp8e4b8"), dtype("fp8e4b15")
float16, bfloat16, float32, float64 = dtype("fp16"), dtype("bf16"), dtype("fp32"), dtype("fp64")

DTYPES: tuple[dtype, ...] = (
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float8e5,
    float8e5b16,
    float8e4nv,
    float8e4b8,
    float8e4b15,
    float16,
    bfloat16,
    float32,
    float64,
)
DTYPE_BY_SHORT_NAME: dict[str, dtype] = {d.short_name(): d for d in DTYPES} | {
    "u1": int1,
    **{d.name: d for d in DTYPES},
    "float8e4nv": float8e4nv,
    "float8e5": float8e5,
}


# The name under which the language has a type, by any name that it has there.
DTYPE_NAMES: dict[str, str] = {
    name: PUBLIC_NAMES.get(d.name, d.name) for d in DTYPES for name in (d.name, repr(d)[16:])
}
# What NumPy, torch and Python call types that the language has under another name.
FOREIGN_DTYPES: dict[str, str] = {
    "half": "float16",
    "float": "float32",
    "float_": "float32",
    "single": "float32",
    "double": "float64",
    "bool": "int1",
    "bool_": "int1",
    "char": "int8",
    "byte": "uint8",
    "short": "int16",
    "int": "int32",
    "int_": "int32",
    "long": "int64",
    "float8_e4m3fn": "float8e4nv",
    "float8_e5m2": "float8e5",
}


class pointer_type(dtype):
    """A pointer to `element_ty`; `const` forbids stores through it."""

    __slots__ = ("address_space", "const", "element_ty")

    def __init__(
        self, element_ty: dtype, address_space: str = "global", const: bool = False
    ) -> None:
        self.element_ty = element_ty
        self.address_space = address_space
        self.const = const
        self.name = f"pointer<{element_ty}>"
        self.primitive_bitwidth = 64
        self._hash = hash(("ptr", element_ty, const))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, pointer_type)
            and other.element_ty == self.element_ty
            and other.const == self.const
        )

    __hash__ = dtype.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return (pointer_type, (self.element_ty, self.address_space, self.const))

    def __repr__(self) -> str:
        return f"triton.language.pointer_type({self.element_ty!r})"

    def __str__(self) -> str:
        return f"ptr<{'const ' if self.const else ''}{self.element_ty}>"

    def is_ptr(self) -> bool:
        """Whether it is a pointer type: yes."""
        return True

    def is_const(self) -> bool:
        """Whether stores through it are forbidden."""
        return self.const

    def short_name(self) -> str:
        """The name used in signatures: `*fp32`, `*kfp32`."""
        return f"*{'k' if self.const else ''}{self.element_ty.short_name()}"


pi32_t = pointer_type(int32)


class block_type(dtype):
    """The type of a tile: element type and static shape."""

    __slots__ = ("_shape", "element_ty", "numel")

    def __init__(self, element_ty: dtype, shape: Sequence[int]) -> None:
        self.element_ty = element_ty
        self._shape = tuple(operator.index(cast("SupportsIndex", unwrap(d))) for d in shape)
        self.numel = 1
        for extent in self._shape:
            self.numel *= extent
        self.name = f"<{list(self._shape)}, {element_ty}>"
        self.primitive_bitwidth = element_ty.primitive_bitwidth
        self._hash = hash(("block", element_ty, self._shape))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is block_type
            and other.element_ty == self.element_ty
            and other._shape == self._shape
        )

    __hash__ = dtype.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return (block_type, (self.element_ty, self._shape))

    def __str__(self) -> str:
        return tile_text(self.element_ty, self._shape)

    def __repr__(self) -> str:
        return f"triton.language.block_type({self.element_ty!r}, {list(self._shape)})"

    @property
    def shape(self) -> tuple_:
        """The shape as a tuple of ints."""
        return tuple_(self._shape)

    @property
    def scalar(self) -> dtype:
        """The element type."""
        return self.element_ty

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape as plain ints."""
        return self._shape

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tile."""
        return self.numel * self.element_ty.itemsize

    def is_block(self) -> bool:
        """Whether it is a tile type: yes."""
        return True

    def is_ptr(self) -> bool:
        """Whether it is a scalar pointer type: no (ask `scalar`)."""
        return False

    def is_int(self) -> bool:
        """Tile types answer type questions through `scalar`."""
        return False

    def is_floating(self) -> bool:
        """Tile types answer type questions through `scalar`."""
        return False


class tensor_descriptor_type(dtype):
    """The type of a tensor descriptor's handle: the tile type that it loads and stores.

    `const` forbids stores through it; `padding` is what loads give out of bounds.
    """

    __slots__ = ("block_type", "const", "padding")

    def __init__(self, block: block_type, const: bool = False, padding: str = "zero") -> None:
        self.block_type = block
        self.const = const
        self.padding = padding
        suffix = "" if padding == "zero" else f", {padding}"
        self.name = f"tensordesc<{block}{suffix}>"
        self.primitive_bitwidth = 0
        self._hash = hash(("tensordesc", block, const, padding))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is tensor_descriptor_type
            and other.block_type == self.block_type
            and other.const == self.const
            and other.padding == self.padding
        )

    __hash__ = dtype.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return (tensor_descriptor_type, (self.block_type, self.const, self.padding))


class tuple_type(dtype):
    """The type of a tuple: the types of its elements, and their names if it has names."""

    __slots__ = ("fields", "types")

    def __init__(self, types: Sequence[dtype], fields: Sequence[str] | None = None) -> None:
        self.types = tuple(types)
        self.fields = None if fields is None else tuple(fields)
        self.name = f"[{', '.join(t.name for t in self.types)}]"
        self.primitive_bitwidth = 0
        self._hash = hash(("tuple", self.types, self.fields))

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is tuple_type and other.types == self.types and other.fields == self.fields
        )

    __hash__ = dtype.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple_type, (self.types, self.fields))


class constexpr_type(dtype):
    """The type of a constexpr: its very value."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value
        self.name = f"constexpr[{value!r}]"
        self.primitive_bitwidth = 0
        self._hash = hash(("constexpr", repr(value)))

    def __eq__(self, other: object) -> bool:
        return type(other) is constexpr_type and other.value == self.value

    __hash__ = dtype.__hash__


def str_to_ty(name: str, c: object = None) -> dtype:
    """The type that a signature calls `name` (`*fp32`, `i64`, `constexpr` with the value `c`).

    Raises: ValueError when there is none.
    """
    if name == "constexpr":
        return constexpr_type(unwrap(c))
    if name.startswith("*"):
        is_const = name.startswith("*k")
        return pointer_type(str_to_ty(name[2 if is_const else 1 :]), const=is_const)
    if name.startswith("tensordesc<") and name.endswith("]>"):
        element, _, shape = name.removeprefix("tensordesc<").removesuffix("]>").partition("[")
        extents = [int(extent) for extent in shape.split(",")]
        return tensor_descriptor_type(block_type(str_to_ty(element), extents))
    if name not in DTYPE_BY_SHORT_NAME:
        raise ValueError(f"{name!r} names no type of the language")
    return DTYPE_BY_SHORT_NAME[name]


def tile_text(element: dtype, shape: Sequence[int]) -> str:
    """How messages print a type: `tile<128x64xfp16>`, or `fp32` for a scalar."""
    if not shape:
        return str(element)
    return f"tile<{'x'.join(str(d) for d in shape)}x{element}>"
