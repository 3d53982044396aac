"""Snapshots: the source text of a kernel and its callees with everything they name.

Nothing here imports xDSL: a launch that finds its kernel in the cache comes this far only.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
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
from tilewright.frontend.program import FunctionSource, Parameter
from tilewright.frontend.type_text import parse_scalar
from tilewright.language.aggregates import AggregateField, fields_of, is_constexpr_annotation
from tilewright.language.core import constexpr, dtype
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import SourceNotAvailable

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
            return _cell_value(self.namespace)
        return self.namespace.get(self.name.rpartition(".")[2], _MISSING)


_MISSING = object()


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
            annotation = _annotated_class(cls, field.annotation)
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
        text, first_line = given or _text_of(function)
        scope = _Scope(function)
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

    def _parameter(self, parameter: inspect.Parameter, scope: _Scope) -> Parameter:
        has_default = parameter.default is not inspect.Parameter.empty
        return Parameter(
            name=parameter.name,
            kind=_KINDS.get(parameter.kind, "positional"),
            annotation=_annotation_text(parameter.annotation, scope),
            has_default=has_default,
            default=constant_of(parameter.default, self.reference) if has_default else None,
        )

    def _capture(
        self, chain: tuple[str, ...], scope: _Scope, captures: dict[str, Constant], is_host: bool
    ) -> None:
        """Record what `chain` means: step by step through modules, then one value."""
        namespace, value = scope.find(chain[0])
        path = chain[0]
        captures[path] = self._constant(path, namespace, value, scope, is_host)
        for name in chain[1:]:
            if not is_namespace(value):
                return
            namespace, value = vars(value), getattr(value, name, _MISSING)
            path = f"{path}.{name}"
            captures[path] = self._constant(path, namespace, value, scope, is_host)

    def _constant(
        self,
        path: str,
        namespace: Mapping[str, object] | CellType | None,
        value: object,
        scope: _Scope,
        is_host: bool,
    ) -> Constant:
        if value is _MISSING:
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
    if value is _MISSING:
        return Unusable("UndefinedName", name)
    if is_jit(value) or is_host_function(value):
        return Unusable("PlainFunctionCall", name)
    return constant_of(value, lambda _: FunctionRef(""))


class _Scope:
    """Where the free names of a live function are found."""

    def __init__(self, function: FunctionType) -> None:
        self._globals = function.__globals__
        cells = function.__closure__ or ()
        self._cells = dict(zip(function.__code__.co_freevars, cells, strict=True))

    def find(self, name: str) -> tuple[Mapping[str, object] | CellType | None, object]:
        """The namespace that holds `name` (None: Python's builtins) and its value."""
        if name in self._cells:
            cell = self._cells[name]
            return cell, _cell_value(cell)
        if name in self._globals:
            return self._globals, self._globals[name]
        if hasattr(builtins, name):
            return None, getattr(builtins, name)
        return {}, _MISSING

    def owner(self) -> object:
        """The class in which the function was defined, where it names `super`, else None."""
        return _cell_value(self._cells["__class__"]) if "__class__" in self._cells else None

    def declares_constexpr(self, name: str) -> bool:
        """Whether the global was declared as `NAME: tl.constexpr = …`."""
        annotation = self._globals.get("__annotations__", {}).get(name)
        return _is_constexpr(annotation) or (
            isinstance(annotation, str) and annotation.rpartition(".")[2] == "constexpr"
        )

    def resolve(self, chain: Sequence[str]) -> object:
        """The live value of a dotted name, or a marker that it has none."""
        _, value = self.find(chain[0])
        for name in chain[1:]:
            value = getattr(value, name, _MISSING)
        return value


def _annotated_class(cls: type, annotation: object) -> object:
    """What a field's annotation names in the module of its class, where it is postponed text."""
    if not isinstance(annotation, str):
        return annotation
    value: object = sys.modules.get(cls.__module__)
    for name in annotation.split("."):
        value = getattr(value, name, None)
    return value


def _cell_value(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # assigned after the kernel was defined, and not yet
        return _MISSING


def _text_of(function: FunctionType) -> tuple[str, int]:
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise SourceNotAvailable(
            f"Python keeps no source text for `{function.__qualname__}`",
        ) from None
    return "".join(lines), first_line


def parse_function(source: FunctionSource) -> ast.FunctionDef:
    """The AST of a function with line and column numbers as in its file.

    Raises: SourceNotAvailable when the text is not a function definition.
    """
    node = _parse(source.text, source.first_line, source.indent)
    if node is None:
        raise SourceNotAvailable(f"`{source.name}` is not written as an ordinary `def`")
    return node


@lru_cache(maxsize=512)
def _parse(text: str, first_line: int, indent: int) -> ast.FunctionDef | None:
    """The definition that `text` holds; nobody changes the tree."""
    # Text from a nested definition keeps its indentation (columns stay true), so that it needs
    # a statement around it.
    prefix = "if True:\n" if indent else ""
    try:
        module = ast.parse(prefix + text)
    except SyntaxError:
        return None
    outer = module.body[0] if module.body else None
    node = outer.body[0] if isinstance(outer, ast.If) else outer
    if not isinstance(node, ast.FunctionDef):
        return None
    ast.increment_lineno(node, first_line - (2 if prefix else 1))
    return node


def global_chains(node: ast.FunctionDef) -> list[tuple[str, ...]]:
    """The dotted names that the body reads from outside, each once, in order of appearance."""
    local = {a.arg for a in _arguments(node.args)}
    nodes = [n for statement in node.body for n in ast.walk(statement)]
    local |= {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    inner = {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
    chains = (_chain(n) for n in nodes if id(n) not in inner or not isinstance(n, ast.Attribute))
    found = dict.fromkeys(c for c in chains if c and c[0] not in local)
    return sorted(found)


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (a for a in (arguments.vararg, arguments.kwarg) if a is not None)


def _chain(node: ast.AST) -> tuple[str, ...] | None:
    """The names of `a.b.c`, or None for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(names))


def _annotation_text(annotation: object, scope: _Scope) -> str:
    """What a parameter's annotation means for its specialisation, '' when nothing."""
    if isinstance(annotation, str):
        annotation = _evaluate_annotation(annotation, scope)
    if _is_constexpr(annotation):
        return "constexpr"
    if isinstance(annotation, dtype):
        return annotation.short_name()
    if isinstance(annotation, str):
        return annotation if parse_scalar(annotation) else ""
    return "const" if getattr(annotation, "__name__", "") == "const" else ""


def _is_constexpr(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, constexpr)


def _evaluate_annotation(text: str, scope: _Scope) -> object:
    """The value of a postponed annotation: a dotted name, a quoted type, or the text itself."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return text
    if isinstance(node, ast.Constant):
        return node.value
    chain = _chain(node)
    if chain is None:
        return text
    value = scope.resolve(chain)
    return text if value is _MISSING else value
