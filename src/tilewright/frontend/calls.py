"""Calls: functions of the language, jit functions, classes, and Python's builtins."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from functools import cache

from tilewright.frontend.aggregates import call_method, construct_aggregate, operator_method
from tilewright.frontend.builtins import BUILTINS, call_host_method
from tilewright.frontend.constants import (
    AggregateRef,
    BuiltinRef,
    FunctionRef,
    HostFunctionRef,
    Imported,
    NamedTupleClass,
    OpRef,
    Partial,
)
from tilewright.frontend.debugging import SPECIAL
from tilewright.frontend.frame import EXPRESSIONS, Frame, Lowering
from tilewright.frontend.host import call_host_function, call_imported
from tilewright.frontend.inlining import inline
from tilewright.frontend.operator_methods import call_operator
from tilewright.frontend.program import Parameter
from tilewright.frontend.sequences import iterate
from tilewright.frontend.signature import bind
from tilewright.frontend.subset import reject_as
from tilewright.frontend.values import (
    AggregateMethod,
    HostMethod,
    Method,
    OperatorMethod,
    describe,
    value_of,
)
from tilewright.language.aggregates import MUST_USE_REASON
from tilewright.language.core import (
    block_type,
    constexpr_type,
    dtype,
    pointer_type,
    tensor,
    tuple_,
    tuple_type,
)
from tilewright.language.stubs import EXTENSIONS, shown_name
from tilewright.ops.library import SURFACE
from tilewright.support.errors import (
    NotCallable,
    NotConstexpr,
    PlainFunctionCall,
    ResultNotUsed,
    TilewrightError,
    UnsupportedError,
)


@EXPRESSIONS.register(ast.Call)
def _call(frame: Frame, node: ast.Call) -> object:
    is_statement = frame.statement_call is node
    function = frame.evaluate(node.func)
    positional, keywords = _arguments(frame, node)
    if is_statement:
        _require_use(frame, function)
    frame.at(node)
    try:
        return call(frame, node, function, positional, keywords)
    except TilewrightError as error:
        _place_at_argument(frame, node, function, error)
        raise


def _require_use(frame: Frame, function: object) -> None:
    """Refuse a call as a statement where the result is the point of the call."""
    match function:
        case AggregateMethod(function=FunctionRef(key) | HostFunctionRef(key)):
            reason = frame.lowering.request.functions[key].must_use
        case FunctionRef(key) | HostFunctionRef(key):
            reason = frame.lowering.request.functions[key].must_use
        case Partial():
            _require_use(frame, function.function)
            return
        case _:
            is_needed = isinstance(function, OpRef) and function.key in _MUST_USE
            reason = MUST_USE_REASON if is_needed else ""
    if reason:
        raise ResultNotUsed(f"nothing uses the result of {describe(function)}", hint=reason)


_MUST_USE = ("advance", "aggregate_replace")


# What functions of the language hand through where they extend it; nothing here reads it.
HIDDEN = ("_semantic", "_generator", "_builder")


def _arguments(frame: Frame, node: ast.Call) -> tuple[list[object], dict[str, object]]:
    positional: list[object] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            positional.extend(iterate(frame.evaluate(argument.value)))
        else:
            positional.append(frame.evaluate(argument))
    keywords: dict[str, object] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise reject_as("calls with **keywords", "name each argument")
        if keyword.arg not in HIDDEN:
            keywords[keyword.arg] = frame.evaluate(keyword.value)
    return positional, keywords


def call(
    frame: Frame,
    node: ast.AST,
    function: object,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """The result of calling any value that can be called.

    Raises: NotCallable.
    """
    match function:
        case OpRef(key) if key in SPECIAL:
            return SPECIAL[key](frame, node, positional, keywords)
        case OpRef(key) if key in _TYPE_CONSTRUCTORS:
            constructor = HostMethod(key, _TYPE_CONSTRUCTORS[key])
            return call_host_method(constructor, positional, keywords)
        case OpRef(key) | Method(key):
            receiver = [function.receiver] if isinstance(function, Method) else []
            return call_surface(frame, node, key, [*receiver, *positional], keywords)
        case FunctionRef(key):
            return inline(frame, node, key, positional, keywords)
        case HostFunctionRef(key):
            return call_host_function(frame, node, key, positional, keywords)
        case Partial():
            given, named = bound_arguments(function)
            rest = {**named, **keywords}
            return call(frame, node, function.function, [*given, *positional], rest)
        case Imported():
            return call_imported(frame, node, function, positional, keywords)
        case BuiltinRef(name) if name in BUILTINS:
            return BUILTINS[name](frame, node, positional, keywords)
        case BuiltinRef(name):
            raise NotCallable(
                f"kernels cannot call Python's `{name}`", hint=_BUILTIN_HINTS.get(name, "")
            )
        case HostMethod():
            return call_host_method(function, positional, keywords)
        case OperatorMethod():
            return call_operator(frame, node, function, positional, keywords)
        case NamedTupleClass():
            return construct(function, positional, keywords)
        case AggregateRef():
            return construct_aggregate(frame, node, function, positional, keywords)
        case AggregateMethod():
            return call_method(frame, node, function, positional, keywords)
        case _ if method := operator_method(frame.lowering, function, "__call__"):
            return call_method(frame, node, method, positional, keywords)
        case _:
            raise NotCallable(f"{describe(function)} cannot be called")


def bound_arguments(function: Partial) -> tuple[list[object], dict[str, object]]:
    """What a functools.partial gives its function before the arguments of the call."""
    named = zip(function.names, map(value_of, function.values), strict=True)
    return [value_of(item) for item in function.positional], dict(named)


_TYPE_CONSTRUCTORS = {
    cls.__name__: cls for cls in (pointer_type, block_type, dtype, constexpr_type, tuple_type)
}
_BUILTIN_HINTS = {
    "enumerate": "loop over tl.static_range(len(x)) and index",
    "zip": "loop over tl.static_range(len(x)) and index",
    "sum": "use tl.sum",
    "open": "pass data as arguments",
    "input": "pass data as arguments",
    "type": "use x.dtype",
    "super": "kernels have no classes",
}


def call_surface(
    frame: Frame,
    node: ast.AST,
    key: str,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """Call a function of the language by its key."""
    entry = SURFACE.get(key)
    if entry is None:
        raise UnsupportedError(f"{shown_name(key)} is not implemented", hint=_remedy_of(key))
    ordered, named = surface_arguments(key, positional, keywords)
    frame.call_node = node
    try:
        return entry.function(frame.builder, *ordered, **named)
    except TilewrightError as error:
        if not error.types and error.span is None:
            error.types = _argument_types(key, positional, keywords)
        raise


def _remedy_of(key: str) -> str:
    module, _, name = key.rpartition(".")
    if module in EXTENSIONS:
        return f'the extension\'s part `ops` must declare `{name}` by @surface(module="{module}")'
    return "`tilewright.language` lists what is"


def surface_arguments(
    key: str, positional: Sequence[object], keywords: Mapping[str, object]
) -> tuple[list[object], dict[str, object]]:
    """The arguments of a language function in the form in which Python takes them."""
    parameters = surface_parameters(key)
    bound = bind(shown_name(key), parameters, positional, keywords, default=lambda p: _LEFT_OUT)
    ordered: list[object] = []
    named: dict[str, object] = {}
    for p in parameters:
        value = bound[p.name]
        if p.kind == "varargs":
            ordered.extend(value)  # type: ignore[arg-type]  # bind gives a tuple
        elif value is not _LEFT_OUT and (p.kind == "keyword" or named or _has_gap(ordered, p)):
            named[p.name] = value
        elif value is not _LEFT_OUT:
            ordered.append(value)
    return ordered, named


_LEFT_OUT = object()


def _has_gap(ordered: Sequence[object], p: Parameter) -> bool:
    """Whether an earlier parameter was left to its default: later ones go by name."""
    return p.default != len(ordered)


@cache
def surface_parameters(key: str) -> tuple[Parameter, ...]:
    """The public parameters of a language function; `default` holds the position."""
    kinds = {
        inspect.Parameter.KEYWORD_ONLY: "keyword",
        inspect.Parameter.VAR_POSITIONAL: "varargs",
    }
    signature = inspect.signature(SURFACE[key].function)
    public = list(signature.parameters.values())[1:]
    return tuple(
        Parameter(
            p.name,
            kinds.get(p.kind, "positional"),
            has_default=p.default is not inspect.Parameter.empty,
            default=position,
        )
        for position, p in enumerate(public)
    )


def _argument_types(
    key: str, positional: Sequence[object], keywords: Mapping[str, object]
) -> dict[str, str]:
    names = [p.name for p in surface_parameters(key)]
    pairs = [*zip(names, positional, strict=False), *keywords.items()]
    return {name: str(value.type) for name, value in pairs if isinstance(value, tensor)}


def construct(
    cls: NamedTupleClass, positional: Sequence[object], keywords: Mapping[str, object]
) -> tuple_:
    """A NamedTuple of values."""
    first_default = len(cls.fields) - len(cls.defaults)
    parameters = [
        Parameter(
            name,
            has_default=index >= first_default,
            default=cls.defaults[index - first_default] if index >= first_default else None,
        )
        for index, name in enumerate(cls.fields)
    ]
    bound = bind(cls.name, parameters, positional, keywords, lambda p: value_of(p.default))
    return tuple_(list(bound.values()), cls.fields, cls)


def _place_at_argument(
    frame: Frame, node: ast.Call, function: object, error: TilewrightError
) -> None:
    """Point the caret at the argument at fault, else at the call."""
    if error.span is not None:
        return
    target = None
    if error.argument is not None:
        target = _argument_node(node, _parameter_names(frame, function), error.argument)
    if isinstance(error, NotConstexpr) and isinstance(target, ast.Name):
        error.hint = frame.unkept_promises.get(target.id, error.hint)
    frame.place(error, target or node)


def _parameter_names(frame: Frame, function: object) -> list[str]:
    match function:
        case OpRef(key) if key in SURFACE:
            return [p.name for p in surface_parameters(key)]
        case Method(key):
            return [p.name for p in surface_parameters(key)][1:]
        case FunctionRef(key):
            return [p.name for p in frame.lowering.request.functions[key].parameters]
        case Partial():
            return _parameter_names(frame, function.function)[len(function.positional) :]
        case NamedTupleClass():
            return list(function.fields)
        case _:
            return []


def _argument_node(node: ast.Call, names: Sequence[str], argument: str) -> ast.AST | None:
    for keyword in node.keywords:
        if keyword.arg == argument:
            return keyword.value
    if argument in names and names.index(argument) < len(node.args):
        return node.args[names.index(argument)]
    return None


def call_function(lowering: Lowering, function: object, arguments: Sequence[object]) -> object:
    """Inline a function that an op was given, such as the combine function of a reduction."""
    frame = lowering.frames[-1]
    inner = function.function if isinstance(function, Partial) else function
    if isinstance(inner, HostFunctionRef | Imported):
        raise PlainFunctionCall(
            f"{describe(function)} is an ordinary Python function, not a kernel function",
            argument="combine_fn",
        )
    if not isinstance(inner, FunctionRef | OpRef):
        raise NotCallable(f"{describe(function)} is no jit function", argument="combine_fn")
    return call(frame, frame.call_node, function, arguments, {})
