"""Attributes and methods of values."""

from __future__ import annotations

import ast
import importlib

from tilewright.frontend import suggestions
from tilewright.frontend.aggregates import (
    DraftState,
    aggregate_attribute,
    class_attribute,
    draft_attribute,
    super_attribute,
)
from tilewright.frontend.capture import LANGUAGE_MODULES, constant_of
from tilewright.frontend.constants import AggregateRef, EnumMember, FunctionRef, Imported
from tilewright.frontend.frame import Frame
from tilewright.frontend.sequences import PointerShape, array_error
from tilewright.frontend.values import (
    HostMethod,
    Method,
    ModuleValue,
    OperatorMethod,
    Super,
    describe,
    foreign,
    import_object,
    is_aggregate,
    plain,
    value_of,
)
from tilewright.language.core import (
    constexpr,
    constexpr_type,
    dtype,
    pointer_type,
    tensor,
    tuple_,
    tuple_type,
)
from tilewright.ops.descriptors.surface import (
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
    if isinstance(value, DraftState):
        return draft_attribute(value, name)
    if isinstance(value, Super):
        return super_attribute(frame, value, name)
    if isinstance(value, EnumMember) and name in ("name", "value"):
        return constexpr(value.name) if name == "name" else value_of(value.value)
    if isinstance(value, constexpr | dtype):
        return _constant_attribute(value, name)
    if isinstance(value, Imported):
        return _foreign_attribute(value, name)
    if name == "value":
        return value  # of a constexpr, which here is what it holds
    if type(value).__module__.split(".")[0] not in ("builtins", "tilewright"):
        return _constant_attribute(constexpr(value), name)
    if name in MEMBERS:
        return Method(MEMBERS[name].key, value)
    raise UnknownAttribute(f"{describe(value)} has no attribute `{name}`")


def _static_method(frame: Frame, cls: AggregateRef, name: str) -> object:
    method = class_attribute(frame.lowering, cls, name)
    if method is None:
        raise UnknownAttribute(f"{describe(cls)} has no method `{name}`")
    return method


def _member(frame: Frame, module: ModuleValue, name: str) -> object:
    path = f"{module.path}.{name}"
    if path in frame.code.source.captures:
        return frame.captured(path)
    if module.name.startswith(LANGUAGE_MODULES):
        found = getattr(importlib.import_module(module.name), name, None)
        if found is not None:
            return value_of(constant_of(found, _no_reference))
    serves = suggestions.of_name(name)
    raise UnknownMember(
        f"`{module.name}` has no member `{name}`", hint=f"use {serves}" if serves else ""
    )


def _no_reference(value: object) -> FunctionRef:
    raise UnknownMember(f"{value!r} is no function of the language")


def _foreign_attribute(value: Imported, name: str) -> object:
    try:
        return foreign(getattr(import_object(value), name))
    except AttributeError:
        raise UnknownAttribute(f"{describe(value)} has no attribute `{name}`") from None


def _tile_attribute(frame: Frame, value: tensor, name: str) -> object:
    if name == "shape" and isinstance(value.type, pointer_type):
        return PointerShape(())
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
    if name in OPERATOR_METHODS:
        operator, is_reflected = OPERATOR_METHODS[name]
        return OperatorMethod(name, operator, value, is_reflected)
    if isinstance(value.type, pointer_type) and name in _ARRAY_ATTRIBUTES:
        raise array_error(f"`.{name}` is asked of a pointer", value)
    raise UnknownAttribute(
        f"a tile has no attribute or method `{name}`",
        types={"tile": str(value.type)},
        hint=suggestions.of_attribute(name, (*MEMBERS, *_TILE_ATTRIBUTES)),
    )


_BINARY_OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div,
    "floordiv": ast.FloorDiv, "mod": ast.Mod, "and": ast.BitAnd, "or": ast.BitOr,
    "xor": ast.BitXor, "lshift": ast.LShift, "rshift": ast.RShift,
}  # fmt: skip
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE,
}  # fmt: skip
_UNARY_OPERATORS: dict[str, type[ast.unaryop]] = {
    "neg": ast.USub, "pos": ast.UAdd, "invert": ast.Invert,
}  # fmt: skip
# Method of a tile → its operator, and whether the tile is the right operand.
OPERATOR_METHODS: dict[str, tuple[type[ast.operator | ast.cmpop | ast.unaryop], bool]] = {
    **{f"__{name}__": (operator, False) for name, operator in _BINARY_OPERATORS.items()},
    **{f"__r{name}__": (operator, True) for name, operator in _BINARY_OPERATORS.items()},
    **{f"__{name}__": (operator, False) for name, operator in _COMPARISONS.items()},
    **{f"__{name}__": (operator, False) for name, operator in _UNARY_OPERATORS.items()},
}

_ARRAY_ATTRIBUTES = (
    *("size", "stride", "strides", "ndim", "dim", "device", "data_ptr", "is_contiguous"),
    *("nbytes", "itemsize", "element_size", "storage_offset"),
)


def _field(value: tuple_, name: str) -> object:
    if value.fields is not None and name in value.fields:
        return value.values[value.fields.index(name)]
    if is_descriptor(value):
        return _descriptor_attribute(value, name)
    if name == "type":
        return type_of(value)
    if name == "value":
        return value
    if name in _LIST_METHODS:
        raise UnknownAttribute(
            f"{describe(value)} has no method `{name}`: lists are tuples in a kernel",
            hint="build a new one in its place: `values = values + (x,)`",
        )
    fields = f"; its fields are {', '.join(value.fields)}" if value.fields else ""
    raise UnknownAttribute(f"{describe(value)} has no field `{name}`{fields}")


_LIST_METHODS = ("append", "extend", "insert", "pop", "remove", "clear")


def type_of(value: object) -> dtype:
    """The type of a value as `.type` gives it: of constants, the constants themselves."""
    if isinstance(value, tensor):
        return value.type
    if isinstance(value, tuple_):
        return tuple_type([type_of(item) for item in value.values], value.fields)
    return constexpr_type(plain(value))


def _descriptor_attribute(value: tuple_, name: str) -> object:
    if name in DESCRIPTOR_METHODS:
        return Method(DESCRIPTOR_METHODS[name], value)
    found = descriptor_attribute(value, name)
    if found is None:
        raise UnknownAttribute(f"a tensor descriptor has no attribute or method `{name}`")
    return found


def _constant_attribute(value: constexpr | dtype, name: str) -> object:
    """An attribute of the wrapped Python value, or of a dtype."""
    if name in ("value", "type"):
        return value if name == "value" else constexpr_type(plain(value))
    host = plain(value)
    if name in MEMBERS and isinstance(host, bool | int | float):
        return Method(MEMBERS[name].key, value)  # an argument may be specialised to a constant
    is_public = not name.startswith("_") and hasattr(host, name)
    if not is_public:
        raise UnknownAttribute(f"{describe(value)} has no attribute `{name}`")
    found = getattr(host, name)
    is_method = callable(found) and not isinstance(found, dtype)
    return HostMethod(name, found) if is_method else foreign(found)
