"""Functions that run in Python at compile time (`constexpr_function`)."""

from __future__ import annotations

import ast
import builtins
import importlib
import textwrap
from collections.abc import Callable, Mapping, Sequence
from enum import EnumMeta
from functools import partial
from types import SimpleNamespace

from tilewright.frontend.constants import (
    BuiltinRef,
    Constant,
    EnumMember,
    HostFunctionRef,
    Imported,
    Literal,
    ModuleRef,
    NamedTupleValue,
    OpRef,
    Partial,
    Record,
    Unusable,
)
from tilewright.frontend.constexpr import run_in_python
from tilewright.frontend.frame import Frame, Lowering, unusable
from tilewright.frontend.lowering_state import HostFunction
from tilewright.frontend.parsing import chain_of
from tilewright.frontend.program import FunctionSource
from tilewright.frontend.suggestions import of_name
from tilewright.frontend.values import (
    MemberNumber,
    MemberText,
    describe,
    foreign,
    import_object,
    is_constant,
    plain,
    value_of,
)
from tilewright.language.core import tensor, tensor_descriptor, tuple_
from tilewright.language.stubs import EXTENSIONS
from tilewright.ops.descriptors.surface import descriptor_attribute, is_descriptor
from tilewright.support.errors import (
    HostCall,
    NameNotUsable,
    NotCallable,
    NotConstexpr,
    PlainFunctionCall,
    UnsupportedConstruct,
)
from tilewright.support.revisions import short_name


def call_host_function(
    frame: Frame,
    node: ast.AST,
    key: str,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """Run a compile-time function on the plain values of its arguments.

    A function that is declared as one is given values of the run too, to ask what they are.
    Raises: NotConstexpr, PlainFunctionCall.
    """
    source = frame.lowering.request.functions[key]
    name = _as_written(node, short_name(key))
    for value in (*positional, *keywords.values()):
        if not (is_constant(value) if source.is_ordinary else _has_type(value)):
            raise (_ordinary_on if source.is_ordinary else _declared_on)(name, value)
    function = make_host_function(frame.lowering, key)
    try:
        return _run(frame.lowering, function, positional, keywords)
    except HostCall as error:
        raise PlainFunctionCall(
            f"`{name}` runs in Python while the kernel compiles, but {error.summary}",
            hint="decorate it with @tilewright.jit, so that its body runs in the kernel",
        ) from error


def call_imported(
    frame: Frame,
    node: ast.AST,
    function: Imported,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """Run a function of another module on compile-time values.

    Raises: PlainFunctionCall.
    """
    for value in (*positional, *keywords.values()):
        if not is_constant(value):
            raise _ordinary_on(_as_written(node, str(function)), value)
    live = import_object(function)
    if not callable(live):
        raise NotCallable(f"{describe(function)} cannot be called")
    return _run(frame.lowering, live, positional, keywords)


def _run(
    lowering: Lowering,
    function: Callable[..., object],
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    arguments = [_argument(lowering, value) for value in positional]
    named = {name: _argument(lowering, value) for name, value in keywords.items()}
    return _result(run_in_python(function, *arguments, **named))


def _result(value: object) -> object:
    if isinstance(value, _Descriptor):
        return value.value
    if isinstance(value, tuple | list):
        return tuple_([_result(item) for item in value])
    return foreign(value)


class _Descriptor(tensor_descriptor):
    """A descriptor as a function sees it that runs at compile time: what it is, and no data."""

    def __init__(self, value: tuple_) -> None:
        self.value = value

    def __getattr__(self, name: str) -> object:
        fields = self.value.fields
        if fields is not None and name in fields:
            return plain(self.value.values[fields.index(name)])
        found = descriptor_attribute(self.value, name)
        if found is None:
            raise AttributeError(f"a tensor descriptor has no `{name}` at compile time")
        return plain(found)


def _has_type(value: object) -> bool:
    """Whether a compile-time function can be given `value`: all of it is known, or its type is."""
    if isinstance(value, tensor) or is_descriptor(value) or is_constant(value):
        return True
    return isinstance(value, tuple_) and value.fields is None and all(map(_has_type, value.values))


def _argument(lowering: Lowering, value: object) -> object:
    """A value as Python has it: constants unwrapped, tiles as they are."""
    if isinstance(value, tuple_) and is_descriptor(value):
        return _Descriptor(value)
    if isinstance(value, tuple_):
        return tuple(_argument(lowering, item) for item in value.values)
    if isinstance(value, HostFunctionRef | Partial):
        return _live(lowering, value)
    if isinstance(value, Imported):
        return import_object(value)
    known = plain(value)
    if isinstance(known, EnumMember | MemberNumber | MemberText):
        return _live_member(known.cls, known.name, known)
    return known


def _as_written(node: ast.AST, name: str) -> str:
    """What a call calls a function, where that is a name."""
    chain = chain_of(node.func) if isinstance(node, ast.Call) else None
    return ".".join(chain) if chain else name


def _declared_on(name: str, value: object) -> NotConstexpr:
    return NotConstexpr(f"{name}() runs at compile time, but an argument is {describe(value)}")


def _ordinary_on(name: str, value: object) -> PlainFunctionCall:
    serves = of_name(name.rpartition(".")[2])
    return PlainFunctionCall(
        f"`{name}` is an ordinary Python function, which runs on compile-time values only, "
        f"but an argument is {describe(value)}",
        hint=f"use {serves}" if serves else "",
    )


def make_host_function(lowering: Lowering, key: str) -> HostFunction:
    """The live function, rebuilt from its source and captures."""
    if key in lowering.host_functions:
        return lowering.host_functions[key]
    source = lowering.request.functions[key]
    namespace = _Namespace(source.captures)
    # Registered before its captures are resolved: functions may call each other.
    lowering.host_functions[key] = HostFunction(source.name, namespace)
    for path, constant in source.captures.items():
        if "." in path or isinstance(constant, Unusable):
            continue
        enum = constant.enum if isinstance(constant, ModuleRef) else None
        if enum is not None and _imported_class(enum) is None:
            namespace[path] = _members(lowering, path, source.captures)
        else:
            namespace[path] = _live(lowering, constant)
    exec(compile(_definition(source), source.file, "exec"), namespace)
    return lowering.host_functions[key]


def _members(lowering: Lowering, path: str, captures: Mapping[str, Constant]) -> SimpleNamespace:
    """An Enum class that a function defines: the members that are read of it."""
    inside = {name: constant for name, constant in captures.items() if name.startswith(f"{path}.")}
    named = {name.removeprefix(f"{path}."): held for name, held in inside.items()}
    return SimpleNamespace(**{name: _live(lowering, held) for name, held in named.items()})


def _definition(source: FunctionSource) -> ast.Module:
    """The function's `def` without decorators and annotations, at its true lines."""
    module = ast.parse(textwrap.dedent(source.text))
    node = module.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise UnsupportedConstruct(f"`{source.name}` is not written as an ordinary `def`")
    node.name = source.name  # of a lambda it is no name that could be written
    node.decorator_list = []
    node.returns = None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    ast.increment_lineno(node, source.first_line - 1)
    return module


class _Namespace(dict[str, object]):
    """The globals of a compile-time function: what it cannot use is an error when it is read."""

    def __init__(self, captures: Mapping[str, Constant]) -> None:
        super().__init__({"__builtins__": builtins})
        self._captures = captures

    def __missing__(self, name: str) -> object:
        constant = self._captures.get(name)
        if isinstance(constant, Unusable):
            raise unusable(name, constant)
        raise KeyError(name)


def _live(lowering: Lowering, constant: Constant) -> object:
    match constant:
        case Imported():
            return import_object(constant)
        case EnumMember(cls, name):
            return _live_member(cls, name, plain(value_of(constant)))
        case Literal() | Record():
            return plain(value_of(constant))
        case ModuleRef(name, enum):
            return importlib.import_module(name) if enum is None else import_object(enum)
        case HostFunctionRef(key):
            return make_host_function(lowering, key)
        case Partial():
            return _live_partial(lowering, constant)
        case BuiltinRef(name):
            return getattr(builtins, name)
        case OpRef(key):
            return _language_member(key)
        case NamedTupleValue(values=values):
            return tuple(values)
        case _:
            return constant


def _live_member(cls: Imported, name: str, known: object) -> object:
    """The member itself; of a class that a function defines, what the kernel knows of it."""
    enum = _imported_class(cls)
    return known if enum is None else enum[name]


def _imported_class(cls: Imported) -> EnumMeta | None:
    """An Enum class, unless a function defines it."""
    try:
        found = import_object(cls)
    except NameNotUsable:
        return None
    assert isinstance(found, EnumMeta)
    return found


def _live_partial(lowering: Lowering, constant: Partial) -> object:
    function = _live(lowering, constant.function)
    if not callable(function):
        return constant  # of a jit function, which Python cannot call here
    positional = [_live(lowering, item) for item in constant.positional]
    values = [_live(lowering, item) for item in constant.values]
    return partial(function, *positional, **dict(zip(constant.names, values, strict=True)))


def _language_member(key: str) -> object:
    """A function or class of the language, or of an extension, by its path."""
    is_extension = key.rpartition(".")[0] in EXTENSIONS
    path = key if is_extension else f"tilewright.language.{key}"
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
