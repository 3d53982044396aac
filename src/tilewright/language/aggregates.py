"""Aggregates: classes whose instances are named groups of values inside of a kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from tilewright.language.core import constexpr
from tilewright.language.host import ConstexprFunction
from tilewright.language.stubs import only_in_kernels, op
from tilewright.support.dataclass import dataclass

Class = TypeVar("Class", bound=type)
Used = TypeVar("Used", bound=Callable[..., object])

_MARKER = "__tilewright_aggregate__"
_NO_DEFAULT = object()


@dataclass(frozen=True)
class AggregateField:
    """One field of an aggregate: its annotation, and its default or `no_default`."""

    name: str
    annotation: object
    default: object = _NO_DEFAULT

    @property
    def has_default(self) -> bool:
        """Whether a construction may leave the field out."""
        return self.default is not _NO_DEFAULT


def aggregate(cls: Class) -> Class:
    """Make a class whose instances group values in a kernel, as tuples with names and methods.

    The annotated names are the fields, those of base aggregates first; a field annotated
    `tl.constexpr` is known at compile time. Without an `__init__`, which must be a
    `constexpr_function`, construction takes the fields by position or name; what the class
    assigns to a field is its default. Methods are jit functions or `constexpr_function`s.
    Instances are immutable: `tl.aggregate_replace` makes changed copies.
    Raises: TypeError for a class without fields, or with a base that is no aggregate.
    """
    for base in cls.__bases__:
        if base is not object and _MARKER not in vars(base):
            raise TypeError(f"the base class {base.__name__} of {cls.__name__} is no aggregate")
    fields = _fields(cls)
    if not fields:
        raise TypeError(f"the aggregate {cls.__name__} annotates no field")
    setattr(cls, _MARKER, fields)
    if not any("__init__" in vars(c) for c in cls.__mro__[:-1]):
        type.__setattr__(cls, "__init__", _assign_fields)
    elif inspect.isfunction(vars(cls).get("__init__")):
        type.__setattr__(cls, "__init__", ConstexprFunction(vars(cls)["__init__"]))
    return cls


def _fields(cls: type) -> dict[str, AggregateField]:
    fields: dict[str, AggregateField] = {}
    for base in reversed(cls.__mro__):
        fields.update(vars(base).get(_MARKER, {}))
    for name, annotation in inspect.get_annotations(cls).items():
        fields[name] = AggregateField(name, annotation, vars(cls).get(name, _NO_DEFAULT))
    return fields


def fields_of(cls: type) -> Mapping[str, AggregateField]:
    """The fields of an aggregate class by name, in the order of construction."""
    fields: Mapping[str, AggregateField] = vars(cls)[_MARKER]
    return fields


def _assign_fields(self: object, *args: object, **kwargs: object) -> None:
    """The constructor of an aggregate without one of its own."""
    fields = fields_of(type(self))
    if len(args) > len(fields):
        raise TypeError(f"{type(self).__name__} has {len(fields)} fields, {len(args)} are given")
    values = dict(zip(fields, args, strict=False))
    for name, value in kwargs.items():
        if name not in fields or name in values:
            raise TypeError(f"{type(self).__name__}: unexpected or repeated field {name!r}")
        values[name] = value
    for name, field in fields.items():
        if name not in values and not field.has_default:
            raise TypeError(f"{type(self).__name__}: the field {name!r} is missing")
        setattr(self, name, values.get(name, field.default))


_assign_fields.__dict__["__tilewright_generated__"] = True


@op("aggregate_replace")
def aggregate_replace(instance: object, **changes: object) -> object:
    """A copy of the aggregate `instance` with the fields that `changes` names replaced.

    Raises: UnexpectedArgument for a name that is no field.
    """
    only_in_kernels("aggregate_replace")


def must_use_result(function: Used) -> Used:
    """Make it an error for a kernel to call `function` and drop what it returns."""
    target = getattr(function, "fn", function)
    target.__dict__["__tilewright_must_use__"] = True
    return function


def is_constexpr_annotation(annotation: object) -> bool:
    """Whether a field's annotation says that its value is known at compile time."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "constexpr"
    return isinstance(annotation, type) and issubclass(annotation, constexpr)
