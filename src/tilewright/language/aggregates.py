"""Aggregates: classes whose instances are named groups of values inside of a kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, dataclass_transform, overload

from tilewright.language.core import constexpr, tuple_
from tilewright.language.host import ConstexprFunction
from tilewright.support.dataclass import dataclass
from tilewright.support.revisions import REVISIONS

Class = TypeVar("Class", bound=type)
Instance = TypeVar("Instance")
Used = TypeVar("Used", bound=Callable[..., object])

_MARKER = "__tilewright_aggregate__"
_NO_DEFAULT = object()
# In an instance's dictionary once it is constructed; no field has this name.
_SEALED = "(sealed)"


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


@dataclass_transform()
def aggregate(cls: Class) -> Class:
    """Make a class whose instances group values in a kernel, as tuples with names and methods.

    The annotated names are the fields, those of base aggregates first; a field annotated
    `tl.constexpr` is known at compile time. Without an `__init__` construction takes the fields by
    position or name, and ends with `__post_init__` where there is one; what the class assigns to
    a field is its default. Constructors run in Python at compile time; other methods are jit
    functions, `constexpr_function`s, or undecorated, which is kernel code too.
    Instances are immutable: `tl.aggregate_replace` makes changed copies. They can be made in
    Python as well and passed to kernels.
    Raises: TypeError for a class with a base that is no aggregate.
    """
    for base in cls.__bases__:
        if base is not object and _MARKER not in vars(base):
            raise TypeError(
                f"the base class {base.__name__} of {cls.__name__} is no aggregate: "
                "Aggregates can only inherit from other aggregates"
            )
    setattr(cls, _MARKER, _fields(cls))
    _make_constructor(cls)
    type.__setattr__(cls, "__setattr__", _set_field)
    REVISIONS.made(f"{cls.__module__}:{cls.__qualname__}")
    return cls


def _make_constructor(cls: type) -> None:
    own, after = vars(cls).get("__init__"), vars(cls).get("__post_init__")
    if inspect.isfunction(after):
        type.__setattr__(cls, "__post_init__", ConstexprFunction(after))
    if isinstance(own, ConstexprFunction):
        own = own.fn
    if inspect.isfunction(own) and not is_kernel_code(own):
        type.__setattr__(cls, "__init__", _Constructor(own, cls))
    elif not any("__init__" in vars(c) for c in cls.__mro__[:-1]):
        type.__setattr__(cls, "__init__", _assign_fields)


def is_kernel_code(function: FunctionType) -> bool:
    """Whether a function takes the state of the language, as functions that extend it do."""
    return bool({"_semantic", "_builder"} & inspect.signature(function).parameters.keys())


class _Constructor(ConstexprFunction):
    """The author's `__init__` of an aggregate, after which an instance is immutable."""

    def __init__(self, fn: FunctionType, owner: type) -> None:
        super().__init__(fn)
        self.owner = owner

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Construct, and seal what is no base's part of a larger construction."""
        super().__call__(*args, **kwargs)
        if type(args[0]) is self.owner:
            vars(args[0])[_SEALED] = True
        return None


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


def field_values(instance: object) -> list[object]:
    """The values of an instance's fields, in the order of construction."""
    return [getattr(instance, name) for name in fields_of(type(instance))]


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
    after = getattr(self, "__post_init__", None)
    if callable(after):
        after()
    vars(self)[_SEALED] = True


def _set_field(self: object, name: str, value: object) -> None:
    """Set a field while an instance is constructed. Raises: AttributeError afterwards."""
    fields = fields_of(type(self))
    if _SEALED in vars(self):
        raise AttributeError(
            f"cannot assign to field {name!r} on immutable aggregate {type(self).__name__}: "
            "tl.aggregate_replace makes a changed copy"
        )
    if name not in fields:
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")
    vars(self)[name] = _as_declared(fields[name].annotation, value)


def _as_declared(annotation: object, value: object) -> object:
    """A field's value as kernels have it: known numbers as constexprs, tuples as the language's."""
    if is_constexpr_annotation(annotation) and not isinstance(value, constexpr):
        return constexpr(value)
    cls = _tuple_class(annotation)
    if isinstance(value, tuple) and cls is not None:
        items = [v if isinstance(v, constexpr) else constexpr(v) for v in value]
        return cls(items, getattr(value, "_fields", None), type(value))
    return value


for _method in (_assign_fields, _set_field):
    _method.__dict__["__tilewright_generated__"] = True


def aggregate_replace(instance: Instance, **changes: object) -> Instance:
    """A copy of the aggregate `instance` with the fields that `changes` names replaced.

    Raises: UnexpectedArgument for a name that is no field; TypeError in Python.
    """
    cls = type(instance)
    if _MARKER not in vars(cls):
        raise TypeError(f"aggregate_replace() expects an aggregate instance, not {instance!r}")
    for name in changes:
        if name not in fields_of(cls):
            raise TypeError(f"aggregate_replace(): {cls.__name__} has no field {name!r}")
    copy = cls.__new__(cls)
    for name in fields_of(cls):
        setattr(copy, name, changes.get(name, getattr(instance, name)))
    vars(copy)[_SEALED] = True
    return copy


aggregate_replace.__dict__["__tilewright_op__"] = "aggregate_replace"
aggregate_replace.__dict__["__tilewright_on_host__"] = True


MUST_USE_REASON = "assign it: values are immutable, and the call changes none of its arguments"


@overload
def must_use_result(function: Used) -> Used: ...


@overload
def must_use_result(function: str) -> Callable[[Used], Used]: ...


def must_use_result(function: Used | str) -> Used | Callable[[Used], Used]:
    """Make it an error for a kernel to call `function` and drop what it returns.

    With a text in its place, `@must_use_result("reason")`, the error says that.
    """
    if isinstance(function, str):
        reason = function or MUST_USE_REASON
        return lambda decorated: _must_use(decorated, reason)
    return _must_use(function, MUST_USE_REASON)


def _must_use(function: Used, reason: str) -> Used:
    target = getattr(function, "fn", function)
    target.__dict__["__tilewright_must_use__"] = reason
    return function


def _tuple_class(annotation: object) -> type[tuple_] | None:
    """The tuple of the language that an annotation, postponed or not, names; None for others."""
    if isinstance(annotation, str):
        return tuple_ if annotation.endswith(".tuple") else None
    if isinstance(annotation, type) and issubclass(annotation, tuple_):
        return annotation
    return None


def is_constexpr_annotation(annotation: object) -> bool:
    """Whether a field's annotation says that its value is known at compile time."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "constexpr"
    return isinstance(annotation, type) and issubclass(annotation, constexpr)
