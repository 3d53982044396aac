"""Dataclasses whose definition costs next to nothing: their methods are made on first use.

The standard decorator compiles up to seven methods when a class is defined, 0.3 ms a class. A
process that compiles one kernel defines 150 classes and uses a third of them, so this decorator
shares what can be shared (`==`, `hash`, `repr`, the refusal to change a frozen object) and
compiles `__init__` when the first object is made. Fields are declared with the standard
`dataclasses.field`, and `fields`, `replace`, `astuple` and `is_dataclass` work as always.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TypeVar, cast, dataclass_transform, overload

Class = TypeVar("Class", bound=type)
Object = TypeVar("Object")
# What a class body says of a field: nothing (MISSING), a default, or `field(…)`.
_Declarations = Mapping[str, object]


@overload
def dataclass(cls: Class, /) -> Class: ...
@overload
def dataclass(*, frozen: bool = False, eq: bool = True) -> Callable[[Class], Class]: ...
@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(
    cls: Class | None = None, /, *, frozen: bool = False, eq: bool = True
) -> Class | Callable[[Class], Class]:
    """Make a dataclass of a class, as `dataclasses.dataclass` does with the same options.

    *Constraints*: annotations are strings (`from __future__ import annotations`); no `InitVar`,
    `KW_ONLY`, slots or order; dataclasses that extend this one are made by this decorator too.
    """

    def decorate(cls: Class) -> Class:
        _define(cls, frozen, eq)
        return cls

    return decorate if cls is None else decorate(cls)


def replace(instance: Object, /, **changes: object) -> Object:
    """A copy of a dataclass object with some fields changed."""
    cls = type(instance)
    names: tuple[str, ...] = getattr(cls, "__match_args__", ())
    values: dict[str, object] = {name: getattr(instance, name) for name in names}
    return cls(**{**values, **changes})


def _define(cls: type, frozen: bool, eq: bool) -> None:
    fields = _fields(cls)
    _set_new(cls, "__match_args__", tuple(n for n, f in fields.items() if _option(f, "init")))
    _set_new(cls, "__dataclass_fields__", _StandardFields(fields))
    _set_new(cls, "__init__", _init_on_first_use(cls, fields, frozen))
    _set_new(cls, "__repr__", _repr_of(tuple(n for n, f in fields.items() if _option(f, "repr"))))
    if eq:
        values = _values_of(tuple(n for n, f in fields.items() if _option(f, "compare")))
        has_hash = vars(cls).get("__hash__") is not None
        _set_new(cls, "__eq__", _eq_of(values))
        if not has_hash:
            setattr(cls, "__hash__", _hash_of(values) if frozen else None)  # noqa: B010
    if frozen:
        _set_new(cls, "__setattr__", _refuse_to_set)
        _set_new(cls, "__delattr__", _refuse_to_delete)


def _set_new(cls: type, name: str, value: object) -> None:
    """Set what the class body did not define itself."""
    if name not in vars(cls):
        setattr(cls, name, value)


def _fields(cls: type) -> dict[str, object]:
    """The declarations of the class and its bases, in order; the class keeps its defaults."""
    fields: dict[str, object] = {}
    for base in cls.__mro__[-1:0:-1]:
        inherited = vars(base).get("__dataclass_fields__")
        if inherited is not None:
            fields.update(getattr(inherited, "declarations", inherited))
    for name, annotation in cls.__annotations__.items():
        if not str(annotation).startswith(("ClassVar", "typing.ClassVar")):
            fields[name] = _declaration(cls, name)
    return fields


def _declaration(cls: type, name: str) -> object:
    declared = vars(cls).get(name, MISSING)
    if isinstance(declared, Field):
        default: object = cast("Field[object]", declared).default
        if default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, default)
    return cast("object", declared)


def _option(declared: object, name: str) -> bool:
    return not isinstance(declared, Field) or bool(getattr(cast("object", declared), name))


class _StandardFields:
    """The class attribute by which the standard library knows dataclasses; made when read."""

    def __init__(self, declarations: _Declarations) -> None:
        self.declarations = declarations
        self._made: dict[str, Field[object]] | None = None

    def __get__(self, instance: object, owner: type) -> dict[str, Field[object]]:
        if self._made is None:
            body = {n: d for n, d in self.declarations.items() if d is not MISSING}
            annotations = dict.fromkeys(self.declarations, "object")
            twin = type(owner.__name__, (), {"__annotations__": annotations, **body})
            self._made = vars(dataclasses.dataclass(twin))["__dataclass_fields__"]
            assert self._made is not None
        return self._made


def _init_on_first_use(cls: type, fields: _Declarations, frozen: bool) -> Callable[..., None]:
    def __init__(self: object, *args: object, **kwargs: object) -> None:
        init = _make_init(cls, fields, frozen)
        setattr(cls, "__init__", init)  # noqa: B010
        init(self, *args, **kwargs)

    return __init__


def _make_init(cls: type, fields: _Declarations, frozen: bool) -> Callable[..., None]:
    """The `__init__` of a dataclass, compiled."""
    names: dict[str, object] = {"_set": object.__setattr__, "_MISSING": MISSING}
    parameters, lines = ["self"], []
    for name, declared in fields.items():
        value = _value_text(name, declared, names)
        if _option(declared, "init"):
            parameters.append(_parameter(name, declared, names))
        elif value == name:
            continue  # neither an argument nor a default: `__post_init__` sets it
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n {body}", names)
    init = cast("Callable[..., None]", names["__init__"])
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _value_text(name: str, declared: object, names: dict[str, object]) -> str:
    """What a field is set to, in the text of `__init__`."""
    if not isinstance(declared, Field):
        return name
    standard = cast("Field[object]", declared)
    if standard.default_factory is not MISSING:
        names[f"_make_{name}"] = standard.default_factory
        made = f"_make_{name}()"
        return f"{made} if {name} is _MISSING else {name}" if standard.init else made
    if not standard.init and standard.default is not MISSING:
        names[f"_default_{name}"] = standard.default
        return f"_default_{name}"
    return name


def _parameter(name: str, declared: object, names: dict[str, object]) -> str:
    default = declared
    if isinstance(declared, Field):
        standard = cast("Field[object]", declared)
        if standard.default_factory is not MISSING:
            return f"{name}=_MISSING"
        default = standard.default
    if default is MISSING:
        return name
    names[f"_default_{name}"] = default
    return f"{name}=_default_{name}"


def _values_of(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _eq_of(values: Callable[[object], tuple[object, ...]]) -> Callable[[object, object], object]:
    def __eq__(self: object, other: object) -> object:
        if self is other:
            return True
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hash_of(values: Callable[[object], tuple[object, ...]]) -> Callable[[object], int]:
    def __hash__(self: object) -> int:
        return hash(values(self))

    return __hash__


def _repr_of(names: tuple[str, ...]) -> Callable[[object], str]:
    @recursive_repr()
    def __repr__(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
