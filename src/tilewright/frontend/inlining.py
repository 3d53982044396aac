"""Calls of jit functions: every call is inlined, specialised to its arguments' types and
compile-time values.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tilewright.frontend.control_flow import RETURN, VALUE, is_set, lower_block
from tilewright.frontend.frame import Exit, Frame
from tilewright.frontend.program import Parameter
from tilewright.frontend.signature import bind
from tilewright.frontend.values import value_of
from tilewright.language.core import constexpr, tuple_
from tilewright.support.errors import (
    RecursionTooDeep,
    ReturnTypeMismatch,
    TilewrightError,
)
from tilewright.support.source import Span

MAX_DEPTH = 256


def inline(
    frame: Frame,
    node: ast.AST,
    key: str,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    """Lower a jit function at the insertion point and give what it returns.

    Errors inside of it carry the chain of calls, outermost last.
    """
    lowering = frame.lowering
    code = lowering.code(key)
    name = code.source.name
    if len(lowering.frames) >= MAX_DEPTH:
        raise RecursionTooDeep(f"calls are nested more than {MAX_DEPTH} deep at `{name}`")
    bound = bind(name, code.source.parameters, positional, keywords, _default)
    inner = Frame(lowering, code, frame, node)
    for p in code.source.parameters:
        if p.is_constexpr:
            inner.promise(p.name, bound[p.name], code.node)
        inner.assign(p.name, _argument(p, bound[p.name]), code.node)
    lowering.frames.append(inner)
    try:
        with lowering.inside(id(node)):
            return run_body(inner)
    except TilewrightError as error:
        error.chain = _extended(error.chain, frame.span(node))
        raise
    finally:
        lowering.frames.pop()


def _extended(chain: tuple[Span, ...], call: Span) -> tuple[Span, ...]:
    """The chain of calls with one more; a call that repeats itself is shown once."""
    return chain if chain and chain[-1] == call else (*chain, call)


def _default(p: Parameter) -> object:
    return value_of(p.default)


def _argument(p: Parameter, value: object) -> object:
    """What a parameter holds; under a constexpr annotation too it may be a runtime value."""
    if p.kind == "varargs":
        assert isinstance(value, tuple)
        return tuple_(list(value))
    return value


def run_body(frame: Frame) -> object:
    """Lower the body of a frame's function and give the returned value."""
    body = frame.code.node.body
    exit_ = lower_block(frame, body)
    return _returned(frame, exit_)


def _returned(frame: Frame, exit_: Exit) -> object:
    value = frame.variables.get(VALUE)
    if value is None:
        return constexpr(None)
    is_none = isinstance(value, constexpr) and value.value is None
    if not is_none and not exit_.leaves and not is_set(frame.variables.get(RETURN)):
        line = frame.scope.assigned_at.get(VALUE, 0)
        raise ReturnTypeMismatch(
            f"{frame.code.source.name}() returns a value at line {line} "
            "but some path ends without `return`",
            hint="return a value of the same type on every path",
            span=frame.span(frame.code.node),
            source=frame.code.line(frame.span(frame.code.node).line),
        )
    return value
