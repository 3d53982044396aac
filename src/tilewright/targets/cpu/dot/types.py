"""How the element types of a `dot` meet the microkernel: one choice for schedule and codegen."""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.codegen.llvm_types import FLOAT_KEYS
from tilewright.ir import types as ir
from tilewright.support.errors import InternalError
from tilewright.targets.cpu.dot.spec import DotSpec

# What a packed operand is kept as: back to the dtype whose products it stands for.
_WIDENED_BYTES = ("i16", "i32")
_ELEMENTS: dict[str, Attribute] = {
    "i8": ir.i8,
    "u8": ir.i8,
    "i16": ir.i16,
    "i32": ir.i32,
    "f16": ir.f16,
    "bf16": ir.bf16,
    "f32": ir.f32,
    "f64": ir.f64,
}


def dtype_key(element: Attribute) -> str:
    """The microkernel's name of an element type."""
    if element in FLOAT_KEYS:
        return FLOAT_KEYS[element]
    if ir.is_integer(element):
        return f"i{ir.width_bits(element)}"
    raise InternalError(f"dot has no operand type {element}")


def packed_element(key: str) -> Attribute:
    """The element type of a buffer that the microkernel reads."""
    return _ELEMENTS[key]


def source_key(element: Attribute) -> str:
    """The dtype whose dot a packed buffer of `element` belongs to: bytes widen to i16 or i32."""
    key = dtype_key(element)
    return "i8" if key in _WIDENED_BYTES else key


def dot_spec(
    a_element: Attribute,
    b_element: Attribute,
    shape: tuple[int, int, int],
    features: frozenset[str],
    vector_bytes: int,
    zero_init: bool = False,
) -> DotSpec:
    """The microkernel for operands of these (source or packed) element types; shape (m, n, k)."""
    m, n, k = shape
    return DotSpec(
        m=m,
        n=n,
        k=k,
        a_dtype=source_key(a_element),
        b_dtype=source_key(b_element),
        features=features,
        vector_bytes=vector_bytes,
        zero_init=zero_init,
    )
