"""Aggregates in a kernel: construction, methods, operators and copies with changes.

An instance is a `tuple_` with field names whose factory is the class's reference, so that it
passes through branches, loops and calls like any other tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import partial

from tilewright.frontend.constants import (
    AggregateRef,
    FunctionRef,
    HostFunctionRef,
    Unusable,
)
from tilewright.frontend.constexpr import run_in_python
from tilewright.frontend.frame import Frame, Lowering, unusable
from tilewright.frontend.host import make_host_function
from tilewright.frontend.inlining import inline
from tilewright.frontend.lowering_state import HostFunction
from tilewright.frontend.phi import materialize
from tilewright.frontend.program import FunctionSource, Parameter
from tilewright.frontend.signature import bind
from tilewright.frontend.values import (
    AggregateMethod,
    Super,
    describe,
    is_aggregate,
    is_constant,
    is_number,
    value_of,
    wrap,
)
from tilewright.language.core import constexpr, tuple_
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    CompileError,
    MissingArgument,
    NotCallable,
    NotConstexpr,
    UnexpectedArgument,
    UnknownAttribute,
)
from tilewright.support.revisions import short_name

_MISSING = object()


def construct_aggregate(
    frame: Frame,
    node: ast.AST,
    cls: AggregateRef,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> tuple_:
    """A new instance of an aggregate class."""
    record = frame.lowering.request.functions[cls.key]
    init, after = record.captures.get("__init__"), record.captures.get("__post_init__")
    state = DraftState(frame.lowering, cls, {}, is_sealed=False)
    if isinstance(init, HostFunctionRef):
        _run(frame, init, Draft(state), positional, keywords)
    elif isinstance(init, FunctionRef):
        inline(frame, node, init.key, [state, *positional], keywords)
    else:
        state.values |= bind(record.name, record.parameters, positional, keywords, _default)
        if isinstance(after, HostFunctionRef):
            _run(frame, after, Draft(state), [], {})
    return _instance(frame, node, cls, state.values)


def _default(field: Parameter) -> object:
    return value_of(field.default)


def _instance(
    frame: Frame, node: ast.AST, cls: AggregateRef, values: Mapping[str, object]
) -> tuple_:
    record = frame.lowering.request.functions[cls.key]
    checked: list[object] = []
    for field in record.parameters:
        value = values.get(field.name, _MISSING)
        if value is _MISSING and field.has_default:
            value = value_of(field.default)
        if value is _MISSING:
            raise MissingArgument(f"{record.name}.__init__ leaves the field `{field.name}` out")
        checked.append(_checked(frame, node, record, field, value))
    return tuple_(checked, [p.name for p in record.parameters], cls)


def _checked(
    frame: Frame, node: ast.AST, record: FunctionSource, field: Parameter, value: object
) -> object:
    """A field's value: known where the annotation says so, else a runtime value if it can be."""
    title = f"{record.name}: the field `{field.name}`"
    if field.is_constexpr:
        if not is_constant(value):
            raise NotConstexpr(
                f"{title} must be known at compile time, but it is {describe(value)}",
                argument=field.name,
            )
        return value
    cls = record.captures.get(f"(type {field.name})")
    if isinstance(cls, AggregateRef) and not is_instance(frame.lowering, value, cls):
        raise CompileError(
            f"{title} must be an instance of {short_name(cls.key)}, not {describe(value)}",
            argument=field.name,
        )
    return materialize(frame.at(node), value) if is_number(value) else value


def is_instance(lowering: Lowering, value: object, cls: AggregateRef) -> bool:
    """Whether `value` is an instance of an aggregate class or of one derived from it."""
    if not (isinstance(value, tuple_) and isinstance(value.factory, AggregateRef)):
        return False
    record = lowering.request.functions[value.factory.key]
    bases = [base for name, base in record.captures.items() if name.startswith("(base ")]
    return cls in (value.factory, *bases)


def member_of(lowering: Lowering, cls: AggregateRef, name: str) -> object:
    """The method `name` of an aggregate class, or None."""
    record = lowering.request.functions[cls.key]
    found = record.captures.get(name)
    if isinstance(found, Unusable):
        raise unusable(f"{record.name}.{name}", found)
    return found


def aggregate_attribute(frame: Frame, value: tuple_, name: str) -> object:
    """A field or method of an instance.

    Raises: UnknownAttribute.
    """
    assert isinstance(value.factory, AggregateRef) and value.fields is not None
    if name in value.fields:
        return value.values[value.fields.index(name)]
    method = class_attribute(frame.lowering, value.factory, name, value)
    if method is not None:
        return method
    record = frame.lowering.request.functions[value.factory.key]
    raise UnknownAttribute(
        f"the aggregate {record.name} has no field or method `{name}`",
        hint=f"its fields are {', '.join(value.fields)}",
    )


def class_attribute(
    lowering: Lowering, cls: AggregateRef, name: str, instance: object = None
) -> object:
    """A method of a class, bound to `instance` or to the class where Python binds it, or None."""
    method = member_of(lowering, cls, name)
    if not isinstance(method, FunctionRef | HostFunctionRef):
        return None
    captures = lowering.request.functions[cls.key].captures
    if f"(classmethod {name})" in captures:
        return AggregateMethod(method, cls)
    is_static = instance is None or f"(staticmethod {name})" in captures
    return method if is_static else AggregateMethod(method, instance)


def draft_attribute(state: DraftState, name: str) -> object:
    """A field or method of an instance that kernel code constructs.

    Raises: UnknownAttribute.
    """
    found = state.values.get(name)
    if found is None:
        found = class_attribute(state.lowering, state.cls, name, state)
    if found is None:
        raise UnknownAttribute(f"{short_name(state.cls.key)} has no `{name}` yet")
    return found


def super_attribute(frame: Frame, value: Super, name: str) -> object:
    """A method of the class above the one in which a method was defined."""
    record = frame.lowering.request.functions[value.cls.key]
    base = record.captures.get("(base 0)")
    method = None
    if isinstance(base, AggregateRef):
        method = member_of(frame.lowering, base, name)
    if not isinstance(method, FunctionRef | HostFunctionRef):
        raise UnknownAttribute(f"no class above {record.name} has a method `{name}`")
    return AggregateMethod(method, value.receiver)


def call_method(
    frame: Frame,
    node: ast.AST,
    method: AggregateMethod,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """Call a method bound to its instance."""
    if isinstance(method.function, FunctionRef):
        arguments = [method.receiver, *positional]
        return inline(frame, node, method.function.key, arguments, keywords)
    receiver = method.receiver
    if isinstance(receiver, AggregateRef):
        raise NotCallable(
            f"the class method `{short_name(method.function.key)}` runs in Python",
            hint="decorate it with @tilewright.jit",
        )
    if isinstance(receiver, DraftState):
        return wrap(_run(frame, method.function, Draft(receiver), positional, keywords))
    assert isinstance(receiver, tuple_) and isinstance(receiver.factory, AggregateRef)
    values = dict(zip(receiver.fields or (), receiver.values, strict=True))
    state = DraftState(frame.lowering, receiver.factory, values, is_sealed=True)
    return wrap(_run(frame, method.function, Draft(state), positional, keywords))


def operator_method(lowering: Lowering, value: object, name: str) -> AggregateMethod | None:
    """The method of an instance that serves an operator, or None."""
    if not (isinstance(value, tuple_) and isinstance(value.factory, AggregateRef)):
        return None
    method = member_of(lowering, value.factory, name)
    if not isinstance(method, FunctionRef | HostFunctionRef):
        return None
    return AggregateMethod(method, value)


def aggregate_replace(
    frame: Frame, node: ast.AST, positional: Sequence[object], keywords: Mapping[str, object]
) -> tuple_:
    """`tl.aggregate_replace(instance, field=value, …)`: a changed copy.

    Raises: NotCallable, UnexpectedArgument.
    """
    value = positional[0] if len(positional) == 1 else None
    if not (isinstance(value, tuple_) and is_aggregate(value)):
        raise NotCallable("aggregate_replace() takes one aggregate and the fields to replace")
    assert value.fields is not None and isinstance(value.factory, AggregateRef)
    for name in keywords:
        if name not in value.fields:
            raise UnexpectedArgument(
                f"aggregate_replace(): {short_name(value.factory.key)} has no field `{name}`",
                argument=name,
                hint=f"its fields are {', '.join(value.fields)}",
            )
    values = dict(zip(value.fields, value.values, strict=True)) | dict(keywords)
    return _instance(frame, node, value.factory, values)


@dataclass
class DraftState:
    """What a `Draft` holds: the fields that have values, and whether more may be set."""

    lowering: Lowering
    cls: AggregateRef
    values: dict[str, object]
    is_sealed: bool

    def assign(self, name: str, value: object) -> None:
        """Set a field.

        Raises: AttributeError, which Python would raise there.
        """
        if self.is_sealed:
            raise AttributeError(
                f"cannot assign to field {name!r} on immutable aggregate: use tl.aggregate_replace"
            )
        record = self.lowering.request.functions[self.cls.key]
        if name not in [p.name for p in record.parameters]:
            raise AttributeError(f"{record.name} has no field `{name}`")
        self.values[name] = wrap(value)

    def method(self, cls: AggregateRef, name: str) -> HostFunction:
        """A compile-time method of a class.

        Raises: AttributeError, which Python would raise there.
        """
        found = member_of(self.lowering, cls, name)
        if not isinstance(found, HostFunctionRef):
            raise AttributeError(f"{short_name(cls.key)} has no field or method `{name}`")
        return make_host_function(self.lowering, found.key)


class Draft:
    """`self` while Python runs a method of an aggregate: fields can be read, and set by __init__.

    Numbers are `constexpr`s, values of run time are tiles.
    """

    def __init__(self, state: DraftState) -> None:
        self.__dict__["(state)"] = state  # no field has this name

    def __setattr__(self, name: str, value: object) -> None:
        _state(self).assign(name, value)

    def __getattr__(self, name: str) -> object:
        state = _state(self)
        if name in state.values:
            return state.values[name]
        return partial(state.method(state.cls, name), self)


def _state(draft: Draft) -> DraftState:
    state = draft.__dict__["(state)"]
    assert isinstance(state, DraftState)
    return state


class HostSuper:
    """What `super()` gives in a method that Python runs."""

    def __init__(self, draft: Draft, owner: AggregateRef) -> None:
        self.draft = draft
        self.record = _state(draft).lowering.request.functions[owner.key]

    def __getattribute__(self, name: str) -> object:
        """The method of the class above; `__init__` too, so every look-up comes here."""
        draft: Draft = object.__getattribute__(self, "draft")
        record: FunctionSource = object.__getattribute__(self, "record")
        state, base = _state(draft), record.captures.get("(base 0)")
        if not isinstance(base, AggregateRef):
            raise AttributeError(f"{record.name} has no class above it")
        if name == "__init__" and member_of(state.lowering, base, name) is None:
            return partial(_assign_fields, draft, base)
        return partial(state.method(base, name), draft)


def _assign_fields(draft: Draft, cls: AggregateRef, *args: object, **kwargs: object) -> None:
    """The constructor of a class that has none of its own."""
    record = _state(draft).lowering.request.functions[cls.key]
    for name, value in bind(record.name, record.parameters, args, kwargs, _default).items():
        setattr(draft, name, value)


def _run(
    frame: Frame,
    method: HostFunctionRef,
    receiver: Draft,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """Run a compile-time method in Python; tiles are passed as they are, constants unwrapped."""
    record = frame.lowering.request.functions[method.key]
    owner = record.captures.get("__class__")
    function = make_host_function(frame.lowering, method.key)
    if isinstance(owner, AggregateRef):
        function.namespace["super"] = lambda *_: HostSuper(receiver, owner)
    arguments = [_unwrapped(value) for value in positional]
    named = {name: _unwrapped(value) for name, value in keywords.items()}
    return run_in_python(function, receiver, *arguments, **named)


def _unwrapped(value: object) -> object:
    return value.value if isinstance(value, constexpr) else value
