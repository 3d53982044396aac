"""The class of element types, and what is known of each by its name."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from tilewright.language.tuples import tuple_
from tilewright.support.errors import CompileError


class dtype:
    """The type of one element.

    `name` is the short name (`fp32`, `i32`, `u8`, `bf16`, `fp8e4nv`, `i1`, `void`).
    """

    __slots__ = ("_hash", "name", "primitive_bitwidth")

    SIGNED = ("int8", "int16", "int32", "int64")
    UNSIGNED = ("int1", "uint8", "uint16", "uint32", "uint64")
    FP8 = ("fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp8e4b15")
    STANDARD_FLOATS = ("fp16", "bf16", "fp32", "fp64")
    OTHER = ("void",)
    # The same sets under the names by which packages know them.
    SINT_TYPES: ClassVar[list[str]] = [*SIGNED]
    UINT_TYPES: ClassVar[list[str]] = [*UNSIGNED]
    STANDARD_FP_TYPES: ClassVar[list[str]] = [*STANDARD_FLOATS]
    FP_TYPES: ClassVar[list[str]] = [*FP8, *STANDARD_FLOATS]
    OTHER_TYPES: ClassVar[list[str]] = [*OTHER]

    class SIGNEDNESS(Enum):
        """Whether an integer type has negative values."""

        SIGNED = 0
        UNSIGNED = 1

    class KIND(Enum):
        """The kinds of types in the order of promotion."""

        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    def __init__(self, name: str) -> None:
        known = (*self.SIGNED, *self.UNSIGNED, *self.FP8, *self.STANDARD_FLOATS, *self.OTHER)
        if name not in known:
            raise ValueError(f"{name!r} is no dtype; one of {', '.join(known)}")
        self.name = name
        self.primitive_bitwidth = _bitwidth(name)
        self._hash = hash(("dtype", name))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is dtype and other.name == self.name)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return (dtype, (self.name,))

    def __repr__(self) -> str:
        return f"triton.language.{PUBLIC_NAMES.get(self.name, self.name)}"

    def __str__(self) -> str:
        return self.name

    @property
    def itemsize(self) -> int:
        """Bytes one element takes in memory."""
        return max(1, self.primitive_bitwidth // 8)

    @property
    def scalar(self) -> dtype:
        """The element type: itself."""
        return self

    @property
    def shape(self) -> tuple_:
        """The shape of a scalar: ()."""
        return tuple_(())

    @property
    def int_bitwidth(self) -> int:
        """Width of an integer type in bits."""
        return self.primitive_bitwidth

    @property
    def int_signedness(self) -> dtype.SIGNEDNESS:
        """Whether an integer type is signed."""
        return self.SIGNEDNESS.SIGNED if self.is_int_signed() else self.SIGNEDNESS.UNSIGNED

    @property
    def fp_mantissa_width(self) -> int:
        """Explicit mantissa bits of a float type."""
        return _MANTISSA[self.name]

    @property
    def exponent_bias(self) -> int:
        """Exponent bias of a float type."""
        return _BIAS[self.name]

    def is_fp8(self) -> bool:
        """Whether it is one of the 8-bit floats."""
        return self.name in self.FP8

    def is_floating(self) -> bool:
        """Whether it is a float of any width."""
        return self.name in self.STANDARD_FLOATS or self.is_fp8()

    def is_standard_floating(self) -> bool:
        """Whether it is fp16, bf16, fp32 or fp64."""
        return self.name in self.STANDARD_FLOATS

    def is_int(self) -> bool:
        """Whether it is an integer, int1 included."""
        return self.name in self.SIGNED or self.name in self.UNSIGNED

    def is_int_signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.name in self.SIGNED

    def is_int_unsigned(self) -> bool:
        """Whether it is an unsigned integer, int1 included."""
        return self.name in self.UNSIGNED

    def is_bool(self) -> bool:
        """Whether it is int1."""
        return self.name == "int1"

    def is_fp8e4nv(self) -> bool:
        """Whether it is fp8e4nv."""
        return self.name == "fp8e4nv"

    def is_fp8e4b8(self) -> bool:
        """Whether it is fp8e4b8."""
        return self.name == "fp8e4b8"

    def is_fp8e4b15(self) -> bool:
        """Whether it is fp8e4b15."""
        return self.name == "fp8e4b15"

    def is_fp8e5(self) -> bool:
        """Whether it is fp8e5."""
        return self.name == "fp8e5"

    def is_fp8e5b16(self) -> bool:
        """Whether it is fp8e5b16."""
        return self.name == "fp8e5b16"

    def is_fp16(self) -> bool:
        """Whether it is fp16."""
        return self.name == "fp16"

    def is_bf16(self) -> bool:
        """Whether it is bf16."""
        return self.name == "bf16"

    def is_fp32(self) -> bool:
        """Whether it is fp32."""
        return self.name == "fp32"

    def is_fp64(self) -> bool:
        """Whether it is fp64."""
        return self.name == "fp64"

    def is_int8(self) -> bool:
        """Whether it is int8."""
        return self.name == "int8"

    def is_int16(self) -> bool:
        """Whether it is int16."""
        return self.name == "int16"

    def is_int32(self) -> bool:
        """Whether it is int32."""
        return self.name == "int32"

    def is_int64(self) -> bool:
        """Whether it is int64."""
        return self.name == "int64"

    def is_uint8(self) -> bool:
        """Whether it is uint8."""
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        """Whether it is uint16."""
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        """Whether it is uint32."""
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        """Whether it is uint64."""
        return self.name == "uint64"

    def is_ptr(self) -> bool:
        """Whether it is a pointer type."""
        return False

    def is_block(self) -> bool:
        """Whether it is a tile type."""
        return False

    def is_void(self) -> bool:
        """Whether it is void."""
        return self.name == "void"

    def is_const(self) -> bool:
        """Whether it is a pointer to constant memory."""
        return False

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """Whether `type_str` names a dtype."""
        return type_str in (
            *dtype.SIGNED,
            *dtype.UNSIGNED,
            *dtype.FP8,
            *dtype.STANDARD_FLOATS,
            *dtype.OTHER,
        )

    def get_int_max_value(self) -> int:
        """The greatest value of an integer type."""
        width = self.primitive_bitwidth
        return (1 << (width - 1)) - 1 if self.is_int_signed() else (1 << width) - 1

    def get_int_min_value(self) -> int:
        """The least value of an integer type."""
        return -(1 << (self.primitive_bitwidth - 1)) if self.is_int_signed() else 0

    def kind(self) -> dtype.KIND:
        """The kind in the promotion order."""
        if self.is_bool():
            return self.KIND.BOOLEAN
        return self.KIND.INTEGRAL if self.is_int() else self.KIND.FLOATING

    def short_name(self) -> str:
        """The name used in signatures: `i32`, `u8`, `fp32`, `i1`."""
        return _SHORT_NAMES.get(self.name, self.name)

    def __call__(self, *_args: object) -> object:
        """Refuse: a dtype converts nothing. Raises: CompileError."""
        raise CompileError(f"dtype {self.name} is no function; use x.to(tl.{self.name})")


def _bitwidth(name: str) -> int:
    if name == "void":
        return 0
    if name.startswith("fp8"):
        return 8
    return int("".join(c for c in name if c.isdigit()))


_MANTISSA = {
    "fp8e4nv": 3,
    "fp8e4b8": 3,
    "fp8e4b15": 3,
    "fp8e5": 2,
    "fp8e5b16": 2,
    "fp16": 10,
    "bf16": 7,
    "fp32": 23,
    "fp64": 52,
}
_BIAS = {
    "fp8e4nv": 7,
    "fp8e4b8": 8,
    "fp8e4b15": 15,
    "fp8e5": 15,
    "fp8e5b16": 16,
    "fp16": 15,
    "bf16": 127,
    "fp32": 127,
    "fp64": 1023,
}
PUBLIC_NAMES = {
    "fp8e4nv": "float8e4nv",
    "fp8e5": "float8e5",
    "fp8e4b8": "float8e4b8",
    "fp8e5b16": "float8e5b16",
    "fp8e4b15": "float8e4b15",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
}
_SHORT_NAMES = {
    "int1": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}
