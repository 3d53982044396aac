"""Attributes and methods of values."""

from __future__ import annotations

from difflib import get_close_matches

from tilewright.frontend.aggregates import aggregate_attribute, member_of, super_attribute
from tilewright.frontend.constants import AggregateRef, EnumMember
from tilewright.frontend.frame import Frame
from tilewright.frontend.values import (
    HostMethod,
    Method,
    ModuleValue,
    Super,
    describe,
    is_aggregate,
    plain,
    value_of,
    wrap,
)
from tilewright.language.core import constexpr, dtype, tensor, tuple_
from tilewright.ops.descriptors import (
    DESCRIPTOR_METHODS,
    descriptor_attribute,
    is_descriptor,
)
from tilewright.ops.library import MEMBERS
from tilewright.support.errors import ShapeMismatch, UnknownAttribute, UnknownMember

_TILE_ATTRIBUTES = ("shape", "dtype", "type", "numel")


def attribute_of(frame: Frame, value: object, name: str) -> object:
    """`value.name`: a member of a module, a property, or a method bound to `value`.

    Raises: UnknownAttribute, UnknownMember.
    """
    if isinstance(value, ModuleValue):
        return _member(frame, value, name)
    if isinstance(value, tensor):
        return _tile_attribute(frame, value, name)
    if is_aggregate(value):
        assert isinstance(value, tuple_)
        return aggregate_attribute(frame, value, name)
    if isinstance(value, tuple_):
        return _field(value, name)
    if isinstance(value, AggregateRef):
        return _static_method(frame, value, name)
    if isinstance(value, Super):
        return super_attribute(frame, value, name)
    if isinstance(value, EnumMember) and name in ("name", "value"):
        return constexpr(value.name) if name == "name" else value_of(value.value)
    if isinstance(value, constexpr | dtype):
        return _constant_attribute(value, name)
    if name in MEMBERS:
        return Method(MEMBERS[name].key, value)
    raise UnknownAttribute(f"{describe(value)} has no attribute `{name}`")


def _static_method(frame: Frame, cls: AggregateRef, name: str) -> object:
    method = member_of(frame.lowering, cls, name)
    if method is None:
        raise UnknownAttribute(f"{describe(cls)} has no method `{name}`")
    return method


def _member(frame: Frame, module: ModuleValue, name: str) -> object:
    path = f"{module.path}.{name}"
    if path not in frame.code.source.captures:
        raise UnknownMember(f"`{module.name}` has no member `{name}`")
    return frame.captured(path)


def _tile_attribute(frame: Frame, value: tensor, name: str) -> object:
    if name in _TILE_ATTRIBUTES:
        return getattr(value, name)
    if name == "T":
        if len(value.static_shape) != 2:
            raise ShapeMismatch(
                f"`.T` takes a tile of 2 dimensions, this is {value.type}",
                hint="use tl.permute with the order of the dimensions",
            )
        return MEMBERS["trans"].function(frame.builder, value)
    if name in MEMBERS:
        return Method(MEMBERS[name].key, value)
    close = get_close_matches(name, (*MEMBERS, *_TILE_ATTRIBUTES), n=1)
    raise UnknownAttribute(
        f"a tile has no attribute or method `{name}`",
        types={"tile": str(value.type)},
        hint=f"did you mean `.{close[0]}`?" if close else "",
    )


def _field(value: tuple_, name: str) -> object:
    if value.fields is not None and name in value.fields:
        return value.values[value.fields.index(name)]
    if is_descriptor(value):
        return _descriptor_attribute(value, name)
    fields = f"; its fields are {', '.join(value.fields)}" if value.fields else ""
    raise UnknownAttribute(f"{describe(value)} has no field `{name}`{fields}")


def _descriptor_attribute(value: tuple_, name: str) -> object:
    if name in DESCRIPTOR_METHODS:
        return Method(DESCRIPTOR_METHODS[name], value)
    found = descriptor_attribute(value, name)
    if found is None:
        raise UnknownAttribute(f"a tensor descriptor has no attribute or method `{name}`")
    return found


def _constant_attribute(value: constexpr | dtype, name: str) -> object:
    """An attribute of the wrapped Python value, or of a dtype."""
    if isinstance(value, constexpr) and name in ("value", "type"):
        return value if name == "value" else value.type
    host = plain(value)
    if name in MEMBERS and isinstance(host, bool | int | float):
        return Method(MEMBERS[name].key, value)  # an argument may be specialised to a constant
    is_public = not name.startswith("_") and hasattr(host, name)
    if not is_public:
        raise UnknownAttribute(f"{describe(value)} has no attribute `{name}`")
    found = getattr(host, name)
    is_method = callable(found) and not isinstance(found, dtype)
    return HostMethod(name, found) if is_method else wrap(found)
