"""What kernels say while they compile or run: static and device print and assert, breakpoints.

`SPECIAL` holds the functions of the language that the frontend implements itself, since they
work on values that ops never see.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from tilewright.frontend.aggregates import aggregate_replace
from tilewright.frontend.builtins import BUILTINS, builtin
from tilewright.frontend.frame import Frame
from tilewright.frontend.program import FunctionSource, Parameter
from tilewright.frontend.signature import bind
from tilewright.frontend.values import describe, is_constant, plain, type_text
from tilewright.language.core import constexpr, tensor, tuple_
from tilewright.ops.debug.ir import BreakpointOp
from tilewright.ops.library import SURFACE
from tilewright.support.errors import (
    NotCallable,
    NotConstexpr,
    StaticAssertionFailed,
    UnsupportedError,
)

Special = Callable[[Frame, ast.AST, Sequence[object], Mapping[str, object]], object]
NOTHING = constexpr(None)


def static_print(
    frame: Frame, node: ast.AST, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Print compile-time values, and the types of runtime ones, when the kernel is compiled."""
    bound = bind("tl.static_print", _PRINT, positional, keywords, lambda p: constexpr(p.default))
    separator, end = (plain(bound[name]) for name in ("sep", "end"))
    if plain(bound["file"]) is not None:
        raise UnsupportedError(
            "static_print(): `file` is given; lines go to the standard output", argument="file"
        )
    texts = [_shown(value) for value in positional]
    frame.lowering.messages.append(str(separator).join(texts) + str(end))
    return NOTHING


_PRINT = [
    Parameter("values", "varargs"),
    Parameter("sep", "keyword", has_default=True, default=" "),
    Parameter("end", "keyword", has_default=True, default="\n"),
    Parameter("file", "keyword", has_default=True),
    Parameter("flush", "keyword", has_default=True, default=False),
]


def _shown(value: object) -> str:
    return str(plain(value)) if is_constant(value) else type_text(value)


def static_assert(
    frame: Frame, node: ast.AST, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Stop the compilation unless a compile-time condition holds."""
    parameters = [Parameter("cond"), Parameter("msg", has_default=True)]
    bound = bind("tl.static_assert", parameters, positional, keywords, lambda p: constexpr(""))
    condition = bound["cond"]
    if not is_constant(condition):
        raise NotConstexpr(
            f"static_assert(): `cond` is {describe(condition)}",
            argument="cond",
            hint="use tl.device_assert for conditions of the run",
        )
    if not plain(condition):
        raise StaticAssertionFailed(_message(plain(bound["msg"])))
    return NOTHING


def _message(text: object) -> str:
    return f"static_assert failed: {text}" if text else "static_assert failed"


def python_print(
    frame: Frame, node: ast.AST, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Python's `print` is device_print: the first argument is the text in front."""
    values = list(positional)
    is_text = bool(values) and isinstance(plain(values[0]), str)
    prefix = values.pop(0) if is_text else constexpr("")
    return SURFACE["device_print"].function(frame.builder, prefix, *values)


BUILTINS["print"] = python_print


def make_constexpr(
    frame: Frame, node: ast.AST, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """`tl.constexpr(x)`: `x`, which must be known at compile time."""
    (value,) = positional
    if not is_constant(value):
        raise NotConstexpr(f"constexpr(): the value is {describe(value)}")
    return value


def make_tuple(
    frame: Frame, node: ast.AST, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """`tl.tuple(x)`: a tuple with the elements of `x`."""
    return BUILTINS["tuple"](frame, node, positional, keywords)


_HEADS = {
    "range": "`for`",
    "static_range": "`for`",
    "condition": "`while`",
    "stage": "`with`",
    "async_task": "`with`",
}

_HEAD_HINTS = {
    "`for`": "write `for i in tl.{}(…):`",
    "`while`": "write `while tl.{}(…):`",
    "`with`": "write `with tl.{}(…):` around the statements that it is for",
}


def _head_only(name: str) -> Special:
    def refuse(
        frame: Frame, node: ast.AST, positional: Sequence[object], keywords: Mapping[str, object]
    ) -> object:
        summary = f"tl.{name} stands only in the head of a {_HEADS[name]}"
        raise NotCallable(summary, hint=_HEAD_HINTS[_HEADS[name]].format(name))

    return refuse


SPECIAL: dict[str, Special] = {
    "static_print": static_print,
    "static_assert": static_assert,
    "constexpr": make_constexpr,
    "tuple": make_tuple,
    "aggregate_replace": aggregate_replace,
    **{name: _head_only(name) for name in _HEADS},
}


@builtin("breakpoint")
def _breakpoint(frame: Frame) -> object:
    """Stop here with the variables as arrays, where the kernel is interpreted."""
    if not frame.builder.options.get("interpret"):
        raise UnsupportedError(
            "breakpoint() works where kernels are interpreted",
            hint="run with TILEWRIGHT_INTERPRET=1, or call kernel.interpret[grid](…)",
        )
    _emit_breakpoint(frame, {})
    return NOTHING


def mark_line(frame: Frame, node: ast.stmt) -> None:
    """Say that the program comes by a statement, for who steps through the kernel."""
    is_silent = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if not is_silent and not _is_breakpoint(node):
        frame.at(node)
        _emit_breakpoint(frame, {"is_step": UnitAttr()})


def has_breakpoints(functions: Mapping[str, FunctionSource]) -> bool:
    """Whether one of the functions stops in the debugger."""
    return any("breakpoint(" in function.text for function in functions.values())


def _is_breakpoint(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "breakpoint"
    )


def _emit_breakpoint(frame: Frame, properties: Mapping[str, Attribute]) -> None:
    visible = {
        name: value
        for name, value in frame.variables.items()
        if isinstance(value, tensor) and not name.startswith("%")
    }
    names = ArrayAttr([StringAttr(name) for name in visible])
    handles = cast("list[SSAValue]", [value.handle for value in visible.values()])
    active = ArrayAttr([StringAttr(f.code.source.name) for f in reversed(frame.lowering.frames)])
    given = {"names": names, "functions": active, **properties}
    frame.builder.emit(BreakpointOp, handles, (), given)


def flatten(values: Sequence[object]) -> list[object]:
    """The leaves of values that may be tuples."""
    flat: list[object] = []
    for value in values:
        flat.extend(flatten(value.values) if isinstance(value, tuple_) else [value])
    return flat
