"""Snapshots: the source text of a kernel and its callees with everything they name.

Nothing here imports xDSL: a launch that finds its kernel in the cache comes this far only.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from types import CellType, FunctionType, ModuleType

from tilewright.frontend.capture import (
    Extension,
    OrdinaryFunction,
    captured,
    constant_of,
    is_aggregate_class,
    is_host_function,
    is_jit,
    is_namespace,
    is_of_language,
    literal,
)
from tilewright.frontend.constants import (
    AggregateRef,
    BuiltinRef,
    Constant,
    FunctionRef,
    HostFunctionRef,
    Imported,
    ModuleRef,
    OpRef,
    Unusable,
)
from tilewright.frontend.fingerprints import fingerprint
from tilewright.frontend.kernel_source import BY_IDENTITY, Guard, KernelSource, held_by
from tilewright.frontend.parameters import parameter_of, require_runtime, with_flags
from tilewright.frontend.parsing import (
    global_chains,
    located_at_parameters,
    looked_up_by_name,
    parse_function,
    text_of,
)
from tilewright.frontend.program import FunctionSource, Parameter
from tilewright.frontend.scope import (
    MISSING,
    Attributes,
    Scope,
    Variable,
    annotated_class,
    member_of,
)
from tilewright.language.aggregates import AggregateField, fields_of, is_constexpr_annotation
from tilewright.support.dataclass import replace
from tilewright.support.deep_calls import with_room
from tilewright.support.errors import SourceNotAvailable
from tilewright.support.revisions import function_name

MUST_USE_MARKER = "__tilewright_must_use__"
GENERATED_MARKER = "__tilewright_generated__"


def require_function(fn: object) -> None:
    """Refuse what has no `def`. Raises: SourceNotAvailable."""
    if callable(fn) and hasattr(fn, "__qualname__"):
        return
    is_partial = isinstance(fn, functools.partial)
    raise SourceNotAvailable(
        f"a kernel is made of a function, not of an object of type {type(fn).__name__}",
        hint="decorate the function itself, and give its parameters defaults" if is_partial else "",
    )


def snapshot(
    function: object,
    do_not_specialize: Sequence[str | int] = (),
    do_not_specialize_on_alignment: Sequence[str | int] = (),
    allow_plain_globals: bool = False,
) -> KernelSource:
    """The snapshot of a function (or aggregate class) and of everything that it reaches.

    `allow_plain_globals` takes plain numbers and strings that the source names as constants.
    Raises: SourceNotAvailable when Python keeps no source text for a function; InvalidOption
    for a constexpr parameter that is not to be specialized.
    """
    snapshotter = _Snapshotter(allow_plain_globals)
    kernel = snapshotter.reference(function)
    sources = dict(snapshotter.sources)
    written = sources[kernel.key]
    flagged = with_flags(written.parameters, do_not_specialize, do_not_specialize_on_alignment)
    sources[kernel.key] = replace(written, parameters=flagged)
    with located_at_parameters(sources, kernel.key):
        require_runtime(written.name, flagged)
    guards, links = (tuple(found.values()) for found in (snapshotter.guards, snapshotter.links))
    return KernelSource(sources, kernel.key, guards, links)


class _Snapshotter:
    """Collects sources depth first; a function that is met again is referred to by its key."""

    def __init__(self, allow_plain_globals: bool) -> None:
        self.sources: dict[str, FunctionSource] = {}
        self.guards: dict[tuple[int, str], Guard] = {}
        self.links: dict[tuple[int, str], Guard] = {}
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
        key = self._unique(function_name(python))
        reference = HostFunctionRef(key) if is_host else FunctionRef(key)
        self._keys[id(python)] = reference
        # What was loaded, or what replaced it; not what its file holds by now.
        given = getattr(function, "__tilewright_text__", None)
        is_ordinary = isinstance(function, OrdinaryFunction)
        try:
            # Functions that call one another may do so deeper than Python's stack.
            self.sources[key] = with_room(
                lambda: self._source(key, python, is_host, is_ordinary, given)
            )
        except SourceNotAvailable:
            del self._keys[id(python)]
            raise
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
                method = value.__func__ if isinstance(value, staticmethod | classmethod) else value
                if isinstance(value, staticmethod | classmethod):
                    members[f"({type(value).__name__} {name})"] = True
                if is_jit(method) or is_host_function(method):
                    members[name] = self.reference(method)
                elif inspect.isfunction(method) and not hasattr(method, GENERATED_MARKER):
                    members[name] = self._method(method)
        return members

    def _method(self, function: FunctionType) -> Constant:
        """An undecorated method of an aggregate: kernel code, where there is source text."""
        try:
            return self.reference(Extension(function))
        except SourceNotAvailable as error:
            return Unusable("NameNotUsable", f"a method without source text ({error.summary})")

    def _unique(self, key: str) -> str:
        """`key`, numbered when another function (of another closure) has it already."""
        unique, number = key, 2
        while unique in self._names:
            unique, number = f"{key}~{number}", number + 1
        self._names.add(unique)
        return unique

    def _source(
        self,
        key: str,
        function: FunctionType,
        is_host: bool,
        is_ordinary: bool,
        given: tuple[str, int] | None,
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
                parameter_of(p, scope, self.reference)
                for p in inspect.signature(function).parameters.values()
            ),
            is_host=is_host,
            is_ordinary=is_ordinary,
            must_use=str(function.__dict__.get(MUST_USE_MARKER, "")),
        )
        captures: dict[str, Constant] = {}
        owner = scope.owner()
        if is_aggregate_class(owner):  # what `super()` starts from
            captures["__class__"] = self.reference(owner)
        node = parse_function(source)
        for chain in global_chains(node):
            self._capture(chain, scope, captures, source)
        for chain in looked_up_by_name(node):
            for name in _names_of(scope.resolve(chain)):
                self._capture((*chain, name), scope, captures, source)
        return replace(source, captures=captures)

    def _capture(
        self,
        chain: tuple[str, ...],
        scope: Scope,
        captures: dict[str, Constant],
        reader: FunctionSource,
    ) -> None:
        """Record what `chain` means: step by step through modules and classes, then one value."""
        namespace, value = scope.find(chain[0])
        path = chain[0]
        origin = Imported(reader.module, path) if reader.is_host else None
        variable = Variable(path, namespace, value, origin)
        self._record(variable, scope, captures, reader, is_whole=len(chain) == 1)
        for number, name in enumerate(chain[1:], 2):
            is_part = variable.is_part or self._is_object(variable)
            if not (is_namespace(value) or is_part):
                return
            origin = member_of(value, origin, name)
            namespace = vars(value) if isinstance(value, ModuleType) else Attributes(value)
            value = getattr(value, name, MISSING)
            path = f"{path}.{name}"
            variable = Variable(path, namespace, value, origin, is_part)
            self._record(variable, scope, captures, reader, is_whole=number == len(chain))

    def _is_object(self, variable: Variable) -> bool:
        """Whether a function of compile time reads a part of what is no constant as a whole."""
        if variable.origin is None or variable.value is MISSING or is_namespace(variable.value):
            return False
        return isinstance(constant_of(variable.value, self.reference), Unusable)

    def _record(
        self,
        variable: Variable,
        scope: Scope,
        captures: dict[str, Constant],
        reader: FunctionSource,
        *,
        is_whole: bool,
    ) -> None:
        """Record what a name means; of an object whose parts are read, only where it is."""
        if is_whole or not self._is_object(variable):
            captures[variable.path] = self._constant(variable, scope, reader)
        elif variable.path not in captures:
            assert variable.origin is not None
            captures[variable.path] = self._guarded(variable, variable.origin, self.links)

    def _constant(self, variable: Variable, scope: Scope, reader: FunctionSource) -> Constant:
        path, value = variable.path, variable.value
        if variable.namespace is None:
            return BuiltinRef(path)
        if reader.is_host and value is not MISSING and (written := literal(value)) is not None:
            return written if reader.is_ordinary else self._guarded(variable, written, self.links)
        # A module's own constants (`math.pi`) are not variables that somebody meant to change.
        is_of_module = "." in path
        is_plain_allowed = (
            reader.is_host
            or is_of_module
            or self._allow_plain_globals
            or scope.declares_constexpr(path)
        )
        read = constant_of if is_plain_allowed else captured
        constant: Constant = Unusable("UndefinedName", path)
        if value is not MISSING:
            constant = read(value, self.reference)
            if isinstance(constant, Unusable) and variable.origin is not None:
                held = replace(variable.origin, digest=fingerprint(value))
                return self._guarded(variable, held, self.links)
            if isinstance(constant, Unusable) and isinstance(variable.namespace, CellType):
                constant = constant.in_closure()
        if reader.is_ordinary or isinstance(constant, _NEVER_CHANGED):
            return constant
        if isinstance(constant, Imported):
            return self._guarded(variable, constant, self.links) if constant.digest else constant
        is_link = variable.is_part or isinstance(constant, BY_IDENTITY)
        kept = self.links if is_link else self.guards
        return self._guarded(variable, constant, kept)

    def _guarded(
        self, variable: Variable, constant: Constant, kept: dict[tuple[int, str], Guard]
    ) -> Constant:
        """A constant whose variable is looked at before each launch."""
        assert variable.namespace is not None
        path, value = variable.path, variable.value
        guard = Guard(path, variable.namespace, value, constant, held_by(value))
        kept.setdefault((id(variable.namespace), path), guard)
        return constant


# What is recorded by its name, not by what it holds.
_NEVER_CHANGED = (ModuleRef, OpRef, BuiltinRef)


def _names_of(namespace: object) -> list[str]:
    """The public names of a namespace of the author's; the language's own need no record."""
    if not is_namespace(namespace) or is_of_language(namespace):
        return []
    return sorted(name for name in vars(namespace) if not name.startswith("_"))
