"""Snapshots: the source text of a kernel and its callees with everything they name.

Nothing here imports xDSL: a launch that finds its kernel in the cache comes this far only.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import CellType, FunctionType
from typing import Protocol

from tilewright.frontend.capture import (
    captured,
    constant_of,
    is_aggregate_class,
    is_host_function,
    is_jit,
    is_namespace,
)
from tilewright.frontend.constants import (
    AggregateRef,
    BuiltinRef,
    Constant,
    FunctionRef,
    HostFunctionRef,
    ModuleRef,
    OpRef,
    Unusable,
)
from tilewright.frontend.parsing import global_chains, parse_function, text_of
from tilewright.frontend.program import FunctionSource, Parameter
from tilewright.frontend.scope import MISSING, Scope, annotated_class, annotation_text, cell_value
from tilewright.language.aggregates import AggregateField, fields_of, is_constexpr_annotation
from tilewright.support.dataclass import dataclass, replace

MUST_USE_MARKER = "__tilewright_must_use__"
GENERATED_MARKER = "__tilewright_generated__"
_KINDS = {
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "varargs",
    inspect.Parameter.VAR_KEYWORD: "varkeywords",
}


class JitLike(Protocol):
    """A jit function object: a wrapper around an ordinary function."""

    @property
    def fn(self) -> FunctionType:
        """The function as written."""
        ...


@dataclass(frozen=True)
class Guard:
    """One variable that a snapshot read: it must still mean the same at the next launch.

    `namespace` is the globals (or module) dictionary, or the closure cell.
    """

    name: str
    namespace: Mapping[str, object] | CellType
    value: object
    constant: Constant

    def is_changed(self) -> bool:
        """Whether the variable now means something else."""
        current = self._current()
        return current is not self.value and _again(current, self.name) != self.constant

    def _current(self) -> object:
        if isinstance(self.namespace, CellType):
            return cell_value(self.namespace)
        return self.namespace.get(self.name.rpartition(".")[2], MISSING)


@dataclass(frozen=True)
class KernelSource:
    """The snapshot of a kernel: every function it reaches, and the guards of what they read."""

    functions: Mapping[str, FunctionSource]
    kernel: str
    guards: tuple[Guard, ...]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters."""
        return self.functions[self.kernel].parameters

    def changed_names(self) -> tuple[str, ...]:
        """The captured variables whose values changed since the snapshot."""
        return tuple(guard.name for guard in self.guards if guard.is_changed())


def snapshot(
    function: JitLike,
    do_not_specialize: Sequence[str | int] = (),
    do_not_specialize_on_alignment: Sequence[str | int] = (),
    allow_plain_globals: bool = False,
) -> KernelSource:
    """The snapshot of a jit function and of everything that it reaches.

    `allow_plain_globals` takes plain numbers and strings that the source names as constants.
    Raises: SourceNotAvailable when Python keeps no source text for a function.
    """
    snapshotter = _Snapshotter(allow_plain_globals)
    kernel = snapshotter.reference(function)
    sources = dict(snapshotter.sources)
    sources[kernel.key] = _with_flags(
        sources[kernel.key], do_not_specialize, do_not_specialize_on_alignment
    )
    return KernelSource(sources, kernel.key, tuple(snapshotter.guards.values()))


def captured_values_changed(source: KernelSource) -> list[str]:
    """The names of captured variables that changed since `source` was taken."""
    return list(source.changed_names())


def _with_flags(
    function: FunctionSource, unspecialized: Sequence[str | int], unaligned: Sequence[str | int]
) -> FunctionSource:
    parameters = tuple(
        Parameter(
            p.name,
            p.kind,
            p.annotation,
            p.has_default,
            p.default,
            specialize=index not in unspecialized and p.name not in unspecialized,
            specialize_alignment=index not in unaligned and p.name not in unaligned,
        )
        for index, p in enumerate(function.parameters)
    )
    return replace(function, parameters=parameters)


class _Snapshotter:
    """Collects sources depth first; a function that is met again is referred to by its key."""

    def __init__(self, allow_plain_globals: bool) -> None:
        self.sources: dict[str, FunctionSource] = {}
        self.guards: dict[tuple[int, str], Guard] = {}
        self._keys: dict[int, FunctionRef | HostFunctionRef | AggregateRef] = {}
        self._names: set[str] = set()
        self._allow_plain_globals = allow_plain_globals

    def reference(self, function: object) -> FunctionRef | HostFunctionRef | AggregateRef:
        """The reference to a function or aggregate class, snapshotting it on first sight."""
        if is_aggregate_class(function):
            assert isinstance(function, type)
            return self._aggregate(function)
        python: FunctionType = function.fn  # type: ignore[attr-defined]  # by the marker
        known = self._keys.get(id(python))
        if known is not None:
            return known
        is_host = is_host_function(function)
        key = self._unique(f"{python.__module__}:{python.__qualname__}")
        reference = HostFunctionRef(key) if is_host else FunctionRef(key)
        self._keys[id(python)] = reference
        # A jit object may hold another text than its file, with the line where it starts.
        given = getattr(function, "__tilewright_text__", None)
        self.sources[key] = self._source(key, python, is_host, given)
        return reference

    def _aggregate(self, cls: type) -> AggregateRef:
        known = self._keys.get(id(cls))
        if isinstance(known, AggregateRef):
            return known
        reference = AggregateRef(self._unique(f"{cls.__module__}:{cls.__qualname__}"))
        self._keys[id(cls)] = reference  # before its methods, which may name the class
        self.sources[reference.key] = FunctionSource(
            key=reference.key,
            name=cls.__name__,
            module=cls.__module__,
            file="",
            first_line=0,
            indent=0,
            text="",
            parameters=tuple(self._field(field) for field in fields_of(cls).values()),
            captures=self._members(cls),
            is_class=True,
        )
        return reference

    def _field(self, field: AggregateField) -> Parameter:
        is_known = is_constexpr_annotation(field.annotation)
        default = constant_of(field.default, self.reference) if field.has_default else None
        return Parameter(
            field.name,
            annotation="constexpr" if is_known else "",
            has_default=field.has_default,
            default=default,
        )

    def _members(self, cls: type) -> dict[str, Constant]:
        """The methods by name, the nearest first; `(base N)` and `(type NAME)` are classes."""
        members: dict[str, Constant] = {}
        for number, base in enumerate(cls.__mro__[1:-1]):
            members[f"(base {number})"] = self.reference(base)
        for name, field in fields_of(cls).items():
            annotation = annotated_class(cls, field.annotation)
            if is_aggregate_class(annotation):
                members[f"(type {name})"] = self.reference(annotation)
        for base in reversed(cls.__mro__[:-1]):
            for name, value in vars(base).items():
                method = value.__func__ if isinstance(value, staticmethod) else value
                if is_jit(method) or is_host_function(method):
                    members[name] = self.reference(method)
                elif inspect.isfunction(method) and not hasattr(method, GENERATED_MARKER):
                    members[name] = constant_of(method, self.reference)
        return members

    def _unique(self, key: str) -> str:
        """`key`, numbered when another function (of another closure) has it already."""
        unique, number = key, 2
        while unique in self._names:
            unique, number = f"{key}~{number}", number + 1
        self._names.add(unique)
        return unique

    def _source(
        self, key: str, function: FunctionType, is_host: bool, given: tuple[str, int] | None
    ) -> FunctionSource:
        text, first_line = given or text_of(function)
        scope = Scope(function)
        source = FunctionSource(
            key=key,
            name=function.__name__,
            module=function.__module__,
            file=function.__code__.co_filename,
            first_line=first_line,
            indent=len(text) - len(text.lstrip(" \t")),
            text=text,
            parameters=tuple(
                self._parameter(p, scope) for p in inspect.signature(function).parameters.values()
            ),
            is_host=is_host,
            must_use=bool(function.__dict__.get(MUST_USE_MARKER, False)),
        )
        captures: dict[str, Constant] = {}
        owner = scope.owner()
        if is_aggregate_class(owner):  # what `super()` starts from
            captures["__class__"] = self.reference(owner)
        for chain in global_chains(parse_function(source)):
            self._capture(chain, scope, captures, is_host)
        return replace(source, captures=captures)

    def _parameter(self, parameter: inspect.Parameter, scope: Scope) -> Parameter:
        has_default = parameter.default is not inspect.Parameter.empty
        return Parameter(
            name=parameter.name,
            kind=_KINDS.get(parameter.kind, "positional"),
            annotation=annotation_text(parameter.annotation, scope),
            has_default=has_default,
            default=constant_of(parameter.default, self.reference) if has_default else None,
        )

    def _capture(
        self, chain: tuple[str, ...], scope: Scope, captures: dict[str, Constant], is_host: bool
    ) -> None:
        """Record what `chain` means: step by step through modules, then one value."""
        namespace, value = scope.find(chain[0])
        path = chain[0]
        captures[path] = self._constant(path, namespace, value, scope, is_host)
        for name in chain[1:]:
            if not is_namespace(value):
                return
            namespace, value = vars(value), getattr(value, name, MISSING)
            path = f"{path}.{name}"
            captures[path] = self._constant(path, namespace, value, scope, is_host)

    def _constant(
        self,
        path: str,
        namespace: Mapping[str, object] | CellType | None,
        value: object,
        scope: Scope,
        is_host: bool,
    ) -> Constant:
        if value is MISSING:
            return Unusable("UndefinedName", path)
        if namespace is None:
            return BuiltinRef(path)
        # A module's own constants (`math.pi`) are not variables that somebody meant to change.
        is_of_module = "." in path
        is_plain_allowed = (
            is_host or is_of_module or self._allow_plain_globals or scope.declares_constexpr(path)
        )
        read = constant_of if is_plain_allowed else captured
        constant = read(value, self.reference)
        if not isinstance(constant, ModuleRef | OpRef | BuiltinRef | FunctionRef | Unusable):
            self.guards.setdefault((id(namespace), path), Guard(path, namespace, value, constant))
        return constant


def _again(value: object, name: str) -> Constant:
    """The constant of a changed variable, for comparison; functions compare by identity."""
    if value is MISSING:
        return Unusable("UndefinedName", name)
    if is_jit(value) or is_host_function(value):
        return Unusable("PlainFunctionCall", name)
    return constant_of(value, lambda _: FunctionRef(""))
