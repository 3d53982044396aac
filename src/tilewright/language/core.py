"""The values and types of the language: dtypes, constexprs, tiles, tuples.

What a kernel's author sees as `tl.tensor` is a *tile*: an immutable value with a static shape
and dtype. Nothing here knows the IR; `tensor.handle` is whatever the frontend put there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import ClassVar, SupportsIndex, cast

from tilewright.support.errors import CompileError

MAX_TILE_ELEMS = 1 << 20


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
        return f"triton.language.{_PUBLIC_NAMES.get(self.name, self.name)}"

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
_PUBLIC_NAMES = {
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
    name: _PUBLIC_NAMES.get(d.name, d.name) for d in DTYPES for name in (d.name, repr(d)[16:])
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


class tensor_descriptor:
    """The class of tensor descriptors, for annotations.

    In a kernel a descriptor is a `tuple_` with this class as factory; see
    ops/descriptors/surface.py.
    """


def tile_text(element: dtype, shape: Sequence[int]) -> str:
    """How messages print a type: `tile<128x64xfp16>`, or `fp32` for a scalar."""
    if not shape:
        return str(element)
    return f"tile<{'x'.join(str(d) for d in shape)}x{element}>"


class const:
    """An annotation for pointer parameters that the kernel only reads."""


class constexpr:
    """A value known at compile time.

    Arithmetic, comparison and bit operators follow Python and give constexprs.
    """

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        while isinstance(value, constexpr):
            value = value.value
        self.value = value

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)  # type: ignore[arg-type]

    def __int__(self) -> int:
        return int(self.value)  # type: ignore[call-overload]

    def __float__(self) -> float:
        return float(self.value)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[constexpr]:
        return iter([constexpr(v) for v in self.value])  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self.value)  # type: ignore[arg-type]

    def __getitem__(self, index: object) -> constexpr:
        return constexpr(self.value[unwrap(index)])  # type: ignore[index]

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the wrapped value."""
        return self.value(*args, **kwargs)  # type: ignore[operator]

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)

    @property
    def type(self) -> constexpr_type:
        """The compile-time type of the value."""
        return constexpr_type(self.value)


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


def unwrap(value: object) -> object:
    """The plain value of a constexpr, anything else unchanged."""
    return value.value if isinstance(value, constexpr) else value


def _delegate(name: str, function: Callable[..., object], reflected: bool = False) -> None:
    def method(self: constexpr, other: object) -> constexpr:
        if isinstance(other, tensor):
            return NotImplemented
        mine, others = self.value, unwrap(other)
        return constexpr(function(others, mine) if reflected else function(mine, others))

    method.__name__ = name
    setattr(constexpr, name, method)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift"):
    _delegate(f"__{_name}__", getattr(operator, _name))
    _delegate(f"__r{_name}__", getattr(operator, _name), reflected=True)
for _name in ("and", "or", "xor"):
    _delegate(f"__{_name}__", getattr(operator, f"__{_name}__"))
    _delegate(f"__r{_name}__", getattr(operator, f"__{_name}__"), reflected=True)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _delegate(f"__{_name}__", getattr(operator, _name))


def _delegate_unary(name: str, function: Callable[..., object]) -> None:
    def method(self: constexpr) -> constexpr:
        return constexpr(function(self.value))

    method.__name__ = name
    setattr(constexpr, name, method)


_delegate_unary("__neg__", operator.neg)
_delegate_unary("__pos__", operator.pos)
_delegate_unary("__invert__", operator.invert)
_delegate_unary("__abs__", operator.abs)


class tensor:
    """A tile or scalar inside a kernel: an SSA value with its type.

    Operators and methods work in kernels only; the frontend gives them meaning.
    """

    __slots__ = ("handle", "type")

    def __init__(self, handle: object, type: dtype) -> None:
        self.handle = handle
        self.type = type

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.type.scalar

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as plain ints; () for a scalar."""
        return self.type.extents if isinstance(self.type, block_type) else ()

    @property
    def shape(self) -> tuple_:
        """The shape as a tuple of constexprs."""
        return tuple_([constexpr(d) for d in self.static_shape])

    @property
    def numel(self) -> constexpr:
        """The number of elements."""
        return constexpr(self.type.numel if isinstance(self.type, block_type) else 1)

    def __str__(self) -> str:
        return str(self.type)

    def __repr__(self) -> str:
        return f"tensor({self.type})"

    def __bool__(self) -> bool:
        raise CompileError(
            "a tile has no truth value at compile time",
            hint="use tl.where for elementwise choice, or reduce to a scalar for `if`",
        )


class tuple_:
    """The tuple of the language: immutable, indexable at compile time, optionally named.

    `fields` names the elements when it came from a NamedTuple; `factory` rebuilds that class.
    """

    __slots__ = ("factory", "fields", "values")

    def __init__(
        self,
        values: Sequence[object],
        fields: Sequence[str] | None = None,
        factory: object = None,
    ) -> None:
        self.values = list(values)
        self.fields = None if fields is None else list(fields)
        self.factory = factory

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[object]:
        return iter(self.values)

    def __getitem__(self, index: object) -> object:
        index = unwrap(index)
        if isinstance(index, slice):
            start, stop, step = (unwrap(p) for p in (index.start, index.stop, index.step))
            return tuple_(self.values[cast("slice", slice(start, stop, step))])
        return self.values[index]  # type: ignore[index]

    def __getattr__(self, name: str) -> object:
        fields = object.__getattribute__(self, "fields")
        if fields is not None and name in fields:
            return self.values[fields.index(name)]
        raise AttributeError(name)

    def __add__(self, other: object) -> tuple_:
        return tuple_([*self.values, *other])  # type: ignore[misc]

    def __mul__(self, count: object) -> tuple_:
        return tuple_(self.values * int(unwrap(count)))  # type: ignore[call-overload]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple | list | tuple_):
            plain = [unwrap(v) for v in self.values]
            return plain == [unwrap(v) for v in other]
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.values))

    def __repr__(self) -> str:
        return f"tuple({', '.join(repr(v) for v in self.values)})"


class PropagateNan(Enum):
    """What minimum, maximum and clamp do with NaN: ignore it (NONE) or give NaN (ALL)."""

    NONE = 0
    ALL = 0xFFFF


def is_power_of_two(value: int) -> bool:
    """Whether `value` is a power of two (1 included)."""
    return value > 0 and value & (value - 1) == 0
