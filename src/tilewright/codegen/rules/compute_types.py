"""The types that scalars and vectors compute in, and are stored in."""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import lanes_of, llvm_type
from tilewright.ir import types as ir


def suffix(type_: Attribute) -> str:
    """The type suffix of an overloaded intrinsic: `v16f32`, `i32`, `v8p0`."""
    element = ir.element_of(type_)
    short = {"float": "f32", "double": "f64", "ptr": "p0"}
    name = short.get(llvm_type(element), llvm_type(element))
    lanes = lanes_of(type_)
    return name if lanes is None else f"v{lanes}{name}"


def is_narrow(type_: Attribute) -> bool:
    """Whether a float type computes in float32."""
    return ir.is_float(type_) and ir.width_bits(type_) < 32


def widened(ctx: EmitContext, type_: Attribute, value: str) -> tuple[Attribute, str]:
    """The compute type of `type_` and the value converted to it."""
    if not is_narrow(type_):
        return type_, value
    source = ir.element_of(type_)
    wide = ir.with_element(type_, ir.f32)
    lanes = lanes_of(type_)
    return wide, ctx.target.convert_float(ctx.fn, source, ir.f32, lanes, value, "rtne")


def narrowed(ctx: EmitContext, type_: Attribute, value: str) -> str:
    """A value of the compute type of `type_` rounded to `type_`."""
    if not is_narrow(type_):
        return value
    target, lanes = ir.element_of(type_), lanes_of(type_)
    return ctx.target.convert_float(ctx.fn, ir.f32, target, lanes, value, "rtne")


def storage_type(element: Attribute) -> str:
    """The LLVM type of an element in memory: i1 takes a byte, a pointer 64 bits."""
    return "i8" if element == ir.i1 else llvm_type(element)
