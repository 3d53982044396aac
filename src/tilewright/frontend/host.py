"""Functions that run in Python at compile time (`constexpr_function`)."""

from __future__ import annotations

import ast
import builtins
import importlib
import textwrap
from collections.abc import Mapping, Sequence

from tilewright.frontend.constants import (
    BuiltinRef,
    Constant,
    HostFunctionRef,
    ModuleRef,
    NamedTupleValue,
    OpRef,
    Unusable,
)
from tilewright.frontend.constexpr import evaluate
from tilewright.frontend.frame import Frame, HostFunction, Lowering, unusable
from tilewright.frontend.program import FunctionSource
from tilewright.frontend.values import describe, function_name, is_constant, plain
from tilewright.support.errors import NotConstexpr, UnsupportedConstruct


def call_host_function(
    frame: Frame, key: str, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Run a compile-time function on the plain values of its arguments."""
    name = function_name(key)
    for value in (*positional, *keywords.values()):
        if not is_constant(value):
            raise NotConstexpr(
                f"{name}() runs at compile time, but an argument is {describe(value)}"
            )
    function = make_host_function(frame.lowering, key)
    arguments = [plain(value) for value in positional]
    return evaluate(function, *arguments, **{k: plain(v) for k, v in keywords.items()})


def make_host_function(lowering: Lowering, key: str) -> HostFunction:
    """The live function, rebuilt from its source and captures."""
    if key in lowering.host_functions:
        return lowering.host_functions[key]
    source = lowering.request.functions[key]
    namespace: dict[str, object] = {"__builtins__": builtins}
    # Registered before its captures are resolved: functions may call each other.
    lowering.host_functions[key] = HostFunction(source.name, namespace)
    for path, constant in source.captures.items():
        if "." not in path:
            namespace[path] = _live(lowering, path, constant)
    exec(compile(_definition(source), source.file, "exec"), namespace)
    return lowering.host_functions[key]


def _definition(source: FunctionSource) -> ast.Module:
    """The function's `def` without decorators and annotations, at its true lines."""
    module = ast.parse(textwrap.dedent(source.text))
    node = module.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise UnsupportedConstruct(f"`{source.name}` is not written as an ordinary `def`")
    node.decorator_list = []
    node.returns = None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    ast.increment_lineno(node, source.first_line - 1)
    return module


def _live(lowering: Lowering, path: str, constant: Constant) -> object:
    match constant:
        case Unusable():
            raise unusable(path, constant)
        case ModuleRef(name):
            return importlib.import_module(name)
        case HostFunctionRef(key):
            return make_host_function(lowering, key)
        case BuiltinRef(name):
            return getattr(builtins, name)
        case OpRef(key):
            return _language_member(key)
        case NamedTupleValue(values=values):
            return tuple(values)
        case _:
            return constant


def _language_member(key: str) -> object:
    """A function or class of the language by its path below `tilewright.language`."""
    module, _, name = f"tilewright.language.{key}".rpartition(".")
    return getattr(importlib.import_module(module), name)
