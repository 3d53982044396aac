"""How a launch types an argument, and the key that it makes of its value."""

from __future__ import annotations

from tilewright.frontend.arrays import array_facts, descriptor_facts, scalar_value
from tilewright.frontend.signature import integer_type

from ..backends.compiler import BaseBackend


def mangle_type(arg: object, specialize: bool = False) -> str:
    """The type of an argument in a signature: `*fp32`, `i32`, `constexpr`."""
    return _native_type(arg)[0]


def _native_type(value: object) -> tuple[str, str]:
    """The type of an argument in a signature, and its kind for specialisation."""
    if value is None:
        return "constexpr", ""
    number = scalar_value(value)
    if isinstance(number, bool):
        return "u1", ""
    if isinstance(number, int):
        return integer_type(number), "int"
    if isinstance(number, float):
        return "fp32", ""
    descriptor = descriptor_facts(value)
    if descriptor is not None:
        return descriptor, ""
    facts = array_facts(value)
    return ("constexpr", "") if facts is None else (f"*{facts.element.short_name()}", "tensor")


def native_specialize_impl(
    backend: type[BaseBackend],
    arg: object,
    is_const: bool = False,
    specialize_value: bool = True,
    align: bool = True,
) -> tuple[str, object]:
    """The type of an argument and the key of its value, as a launch specialises it."""
    type_, kind = _native_type(arg)
    if type_ == "constexpr":
        return type_, arg
    if kind == "int" and arg == 1 and specialize_value:
        return "constexpr", 1
    if is_const and type_.startswith("*"):
        type_ = f"*k{type_[1:]}"
    if not kind:
        return type_, None
    key = backend.get_arg_specialization(arg, kind, align=align) if specialize_value else ""
    return type_, key
