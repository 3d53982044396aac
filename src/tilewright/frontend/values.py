"""The values that expressions of a kernel have while it is lowered.

A value is a `tensor` (known at run time) or a compile-time value: a `constexpr`, a dtype, a
`tuple_` of values, or one of the references of `constants`.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import cast

from tilewright.frontend.constants import (
    AggregateRef,
    BuiltinRef,
    Constant,
    EnumMember,
    FunctionRef,
    HostFunctionRef,
    Imported,
    Literal,
    ModuleRef,
    NamedTupleClass,
    NamedTupleValue,
    OpRef,
    Partial,
    Record,
    where,
)
from tilewright.language.core import PropagateNan, constexpr, dtype, tensor, tuple_
from tilewright.ops.descriptors.surface import is_descriptor
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import NameNotUsable
from tilewright.support.revisions import short_name


@dataclass(frozen=True)
class ModuleValue:
    """A module or enumeration under the name that the kernel gives it."""

    path: str
    name: str
    enum: Imported | None = None

    def __str__(self) -> str:
        return f"the {'Enum class' if self.enum else 'module'} `{self.name}`"


@dataclass(frozen=True)
class Method:
    """A function of the language bound to the value it is a method of."""

    key: str
    receiver: object

    def __str__(self) -> str:
        return f"the method `{self.key}`"


@dataclass(frozen=True)
class OperatorMethod:
    """An operator bound to its tile under the name of its method, such as `x.__add__`."""

    name: str
    operator: type[ast.operator | ast.cmpop | ast.unaryop]
    receiver: object
    is_reflected: bool

    def __str__(self) -> str:
        return f"the method `{self.name}`"


@dataclass(frozen=True)
class HostMethod:
    """A method of a compile-time value, such as `dtype.is_fp16`, that Python runs."""

    name: str
    function: Callable[..., object]

    def __str__(self) -> str:
        return f"the method `{self.name}`"


@dataclass(frozen=True)
class AggregateMethod:
    """A method of an aggregate bound to its instance."""

    function: FunctionRef | HostFunctionRef
    receiver: object

    def __str__(self) -> str:
        return f"the method `{short_name(self.function.key)}`"


@dataclass(frozen=True)
class Super:
    """What `super()` means in a method that was defined in `cls`."""

    cls: AggregateRef
    receiver: object


def is_aggregate(value: object) -> bool:
    """Whether `value` is an instance of an aggregate class."""
    return isinstance(value, tuple_) and isinstance(value.factory, AggregateRef)


def value_of(constant: Constant) -> object:
    """The value that a constant of the request has in a kernel."""
    if constant is None or isinstance(constant, bool | int | float | str | PropagateNan):
        return constexpr(constant)
    if isinstance(constant, tuple):
        return tuple_([value_of(item) for item in constant])
    if isinstance(constant, NamedTupleValue):
        values = [value_of(item) for item in constant.values]
        return tuple_(values, constant.cls.fields, constant.cls)
    if isinstance(constant, EnumMember) and constant.is_plain:
        return constexpr(_plain_member(constant))
    if isinstance(constant, Literal):
        return constexpr(ast.literal_eval(constant.text))
    if isinstance(constant, Record):
        return constexpr(_object_of(constant))
    return constant


class MemberNumber(int):
    """A member of an IntEnum, which is its value and has a name."""

    name: str
    cls: Imported


class MemberText(str):
    """A member of a StrEnum, which is its value and has a name."""

    __slots__ = ("cls", "name")
    name: str
    cls: Imported


def _plain_member(member: EnumMember) -> object:
    made = MemberText(member.value) if isinstance(member.value, str) else member.value
    made = MemberNumber(made) if isinstance(made, int) else made
    if isinstance(made, MemberNumber | MemberText):
        made.name, made.cls = member.name, member.cls
    return made


def is_member(value: object, enum: ModuleRef | ModuleValue) -> bool:
    """Whether a value of a kernel is a member of an Enum class."""
    held = value.value if isinstance(value, constexpr) else value
    if not isinstance(held, EnumMember | MemberNumber | MemberText) or enum.enum is None:
        return False
    return (held.cls.module, held.cls.name) == (enum.enum.module, enum.enum.name)


def _object_of(constant: Record) -> object:
    """The dataclass object that a record stands for; of a local class, its fields alone."""
    values = {
        name: plain(value_of(value))
        for name, value in zip(constant.fields, constant.values, strict=True)
    }
    try:
        cls = import_object(constant.cls)
    except NameNotUsable:
        return SimpleNamespace(**values)
    assert isinstance(cls, type)
    made = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def import_object(reference: Imported) -> object:
    """The object that a reference names.

    Raises: NameNotUsable where it cannot be imported here.
    """
    try:
        value: object = importlib.import_module(reference.module)
        for name in reference.name.split("."):
            value = getattr(value, name)
    except (ImportError, AttributeError) as error:
        raise NameNotUsable(f"`{reference}` cannot be imported: {error}") from error
    return value


def is_constant(value: object) -> bool:
    """Whether `value` is known at compile time in all its parts."""
    if isinstance(value, tuple_):
        return all(is_constant(item) for item in value.values)
    return not isinstance(value, tensor | Method | AggregateMethod | Super)


def plain(value: object) -> object:
    """The Python value of a compile-time value: numbers unwrapped, tuples as tuples."""
    if isinstance(value, constexpr):
        return value.value
    if isinstance(value, tuple_):
        return tuple(plain(item) for item in value.values)
    return value


def wrap(value: object) -> object:
    """A plain Python result as a value of the language: the inverse of `plain`."""
    if isinstance(value, tuple | list):
        return tuple_([wrap(item) for item in value])
    if isinstance(value, Enum) and not isinstance(value, PropagateNan):
        is_plain = isinstance(value, int | float | str)
        member = cast("Constant", value.value)
        return value_of(EnumMember(where(type(value)), value.name, member, is_plain))
    if value is None or isinstance(value, bool | int | float | str | PropagateNan):
        return constexpr(value)
    return value


def foreign(value: object) -> object:
    """What Python gave as a value of the language; objects of other packages are constants."""
    item = getattr(value, "item", None)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 and callable(item):
        value = item()
    wrapped = wrap(value)
    is_ours = not hasattr(value, "__dict__") or type(value).__module__.startswith("tilewright")
    return wrapped if wrapped is not value or is_ours else constexpr(value)


def is_number(value: object) -> bool:
    """Whether `value` is a compile-time bool, int or float."""
    return isinstance(value, constexpr) and isinstance(value.value, bool | int | float)


def same_constant(a: object, b: object) -> bool:
    """Whether two compile-time values are one: equal and of one type (1 is not True)."""
    if a is b:
        return True
    if isinstance(a, tuple_) and isinstance(b, tuple_):
        pairs = zip(a.values, b.values, strict=False)
        return len(a) == len(b) and all(same_constant(x, y) for x, y in pairs)
    if isinstance(a, tensor) or isinstance(b, tensor) or type(a) is not type(b):
        return False
    x, y = plain(a), plain(b)
    return type(x) is type(y) and (x == y or (x != x and y != y))


_NAMED = (
    FunctionRef,
    HostFunctionRef,
    OpRef,
    BuiltinRef,
    EnumMember,
    AggregateRef,
    ModuleValue,
    Method,
    OperatorMethod,
    HostMethod,
    AggregateMethod,
)


def describe(value: object) -> str:
    """What `value` is, in the user's words."""
    if isinstance(value, tensor):
        return f"a runtime value of type {value.type}"
    if isinstance(value, constexpr):
        return f"the constant {value.value!r}"
    if isinstance(value, dtype):
        return f"the dtype {value}"
    if is_descriptor(value):
        return "a tensor descriptor"
    if isinstance(value, tuple_) and isinstance(value.factory, AggregateRef):
        return f"an instance of the aggregate `{short_name(value.factory.key)}`"
    if isinstance(value, tuple_):
        return f"a tuple of {len(value)}"
    if isinstance(value, Imported):
        return f"Python's `{value}`"
    if isinstance(value, Partial):
        return f"{describe(value.function)} with some of its arguments"
    if isinstance(value, ModuleRef):
        return str(ModuleValue(value.name, value.name, value.enum))
    if isinstance(value, NamedTupleClass):
        return f"the class `{value.name}`"
    if isinstance(value, _NAMED):
        return str(value)
    return f"a value of type {type(value).__name__}"


def type_text(value: object) -> str:
    """The type of a value as messages print it."""
    if isinstance(value, tensor):
        return str(value.type)
    if isinstance(value, constexpr):
        return f"constexpr {value.value!r}"
    if is_descriptor(value):
        return str(value.values[0])  # type: ignore[attr-defined]  # a tuple: its handle
    if isinstance(value, tuple_) and isinstance(value.factory, AggregateRef):
        names = zip(value.fields or (), value.values, strict=True)
        parts = ", ".join(f"{name}: {type_text(item)}" for name, item in names)
        return f"{short_name(value.factory.key)}({parts})"
    if isinstance(value, tuple_):
        return f"({', '.join(type_text(item) for item in value.values)})"
    return describe(value)
