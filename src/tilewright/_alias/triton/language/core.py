"""`triton.language.core`: the types and functions of the language, as members of this module.

Clients copy names of kernels into sources that they generate, and keep only those whose
`__module__` starts with `triton`; so the classes here are thin subclasses, and the functions
copies, of Tilewright's.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TypeVar

import tilewright.language as _language
from tilewright.language import core as _core
from tilewright.language.core import PropagateNan as PropagateNan
from tilewright.language.core import tuple_ as _tuple
from tilewright.language.host import constexpr_function

from .._names import BUILTIN_MARKER, public_names, refuse

TRITON_BUILTIN = BUILTIN_MARKER
TRITON_MAX_TENSOR_NUMEL = _core.MAX_TILE_ELEMS

_Function = TypeVar("_Function", bound=Callable[..., object])


class _Class(type):
    """A class under Triton's name: what the compiler makes is an instance of it too."""

    def __instancecheck__(cls, instance: object) -> bool:
        base = cls.__bases__[0]
        is_ours = base.__module__.startswith("tilewright.language.")
        return isinstance(instance, base) if is_ours else super().__instancecheck__(instance)


class constexpr(_core.constexpr, metaclass=_Class):
    """A value known at compile time."""

    __slots__ = ()


class dtype(_core.dtype, metaclass=_Class):
    """The type of one element."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _core.dtype) and other.name == self.name

    __hash__ = _core.dtype.__hash__

    def __reduce__(self) -> builtins.tuple[object, ...]:
        return (dtype, (self.name,))


class pointer_type(_core.pointer_type, metaclass=_Class):
    """The type of a pointer to elements."""

    __slots__ = ()


class block_type(_core.block_type, metaclass=_Class):
    """The type of a tile."""

    __slots__ = ()


class tensor(_core.tensor, metaclass=_Class):
    """A tile or scalar inside a kernel."""

    __slots__ = ()


class tuple(_tuple, metaclass=_Class):
    """The tuple of the language."""

    __slots__ = ()


class const(_core.const):
    """An annotation for pointers that are only read."""


class constexpr_type(_core.constexpr_type, metaclass=_Class):
    """The type of a constexpr."""

    __slots__ = ()


class tensor_descriptor(_core.tensor_descriptor, metaclass=_Class):
    """The class of tensor descriptors, for annotations and compile-time functions."""


class tuple_type(_core.tuple_type, metaclass=_Class):
    """The type of a tuple."""

    __slots__ = ()


class tensor_descriptor_type(_core.tensor_descriptor_type, metaclass=_Class):
    """The type of a tensor descriptor's handle."""

    __slots__ = ()


# What `isinstance` is asked about in type annotations and host code.
base_value = tensor
base_type = dtype
tensor_descriptor_base = tensor_descriptor
tensor_descriptor_base_type = tensor_descriptor_type

void = dtype("void")
int1, int8, int16, int32, int64 = (dtype(f"int{w}") for w in (1, 8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{w}") for w in (8, 16, 32, 64))
float8e5, float8e5b16 = dtype("fp8e5"), dtype("fp8e5b16")
float8e4nv, float8e4b8, float8e4b15 = dtype("fp8e4nv"), dtype("fp8e4b8"), dtype("fp8e4b15")
float16, bfloat16, float32, float64 = dtype("fp16"), dtype("bf16"), dtype("fp32"), dtype("fp64")
pi32_t = pointer_type(int32)
CONSTEXPR_0 = constexpr(0)
slice = builtins.slice

_OWN = frozenset(globals())
globals().update(
    public_names(
        _language,
        __name__,
        (name for name in _language.__all__ if name not in _OWN and name not in ("extra", "math")),
    )
)


_experimental_make_tensor_descriptor = vars()["make_tensor_descriptor"]


def builtin(fn: _Function) -> _Function:
    """Mark a function as part of the language: kernels run its body while they are compiled."""
    setattr(fn, BUILTIN_MARKER, True)
    return fn


extern = builtin


def is_builtin(fn: object) -> bool:
    """Whether `fn` is a function of the language."""
    return bool(getattr(fn, BUILTIN_MARKER, False))


@constexpr_function
def get_int_dtype(bitwidth: int, signed: bool) -> _core.dtype:
    """The integer type of a width and signedness."""
    return _core.int1 if bitwidth == 1 else _core.dtype(f"{'int' if signed else 'uint'}{bitwidth}")


@constexpr_function
def _unwrap_if_constexpr(value: object) -> object:
    """The plain value of a constexpr, anything else unchanged."""
    return value


@constexpr_function
def _unwrap_shape(shape: builtins.tuple[object, ...]) -> list[object]:
    """A shape as plain integers."""
    return [getattr(extent, "value", extent) for extent in shape]


@constexpr_function
def check_bit_width(value: _core.tensor, shift_value: object) -> None:
    """Nothing: shifts that are too wide are reported where they are written."""


_constexpr_to_value = _unwrap_if_constexpr
_aggregate = _language.aggregate


__getattr__ = refuse(
    __name__,
    {
        "advance": "use tensor descriptors",
        "ir": "there is no C++ module; `tilewright ir FILE` prints the IR of a kernel",
    },
)
