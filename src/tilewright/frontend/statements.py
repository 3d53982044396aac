"""The rules of statements, but for loops and `if`."""

from __future__ import annotations

import ast

from tilewright.frontend.aggregates import DraftState
from tilewright.frontend.calls import call_surface
from tilewright.frontend.constexpr import run_in_python
from tilewright.frontend.control_flow import BREAK, CONTINUE, RETURN, SET, VALUE
from tilewright.frontend.expressions import apply_binary, assignable
from tilewright.frontend.frame import FALLS, LEAVES, STATEMENTS, Exit, Frame
from tilewright.frontend.sequences import unpack
from tilewright.frontend.subset import reject_as, starred_target
from tilewright.frontend.values import is_constant, plain
from tilewright.language.core import constexpr, pointer_type, tensor, tuple_
from tilewright.support.errors import ConditionNotBoolean, ReturnTypeMismatch


@STATEMENTS.register(ast.Expr)
def _expression(frame: Frame, node: ast.Expr) -> Exit:
    frame.statement_call = node.value
    if not isinstance(node.value, ast.Constant):  # a docstring is no value
        frame.evaluate(node.value)
    return FALLS


@STATEMENTS.register(ast.Pass)
def _pass(frame: Frame, node: ast.Pass) -> Exit:
    return FALLS


@STATEMENTS.register(ast.Assign)
def _assign(frame: Frame, node: ast.Assign) -> Exit:
    if len(node.targets) != 1:
        raise reject_as("assignments to several targets", "write one assignment a line")
    assign_target(frame, node.targets[0], frame.evaluate(node.value), node)
    return FALLS


def assign_target(frame: Frame, target: ast.expr, value: object, node: ast.stmt) -> None:
    """Bind a name, or the names of a (nested) tuple."""
    if isinstance(target, ast.Name):
        frame.assign(target.id, assignable(frame, value, node, target.id), node)
        return
    if isinstance(target, ast.Attribute):
        _assign_field(frame, target, value)
        return
    if isinstance(target, ast.Subscript):
        raise _no_element(frame.evaluate(target.value))
    if not isinstance(target, ast.Tuple | ast.List):
        raise _bad_target(target)
    for element in target.elts:
        if isinstance(element, ast.Starred):
            raise _bad_target(element)
    for element, item in zip(target.elts, unpack(value, len(target.elts)), strict=True):
        assign_target(frame, element, item, node)


def _assign_field(frame: Frame, target: ast.Attribute, value: object) -> None:
    """`self.name = value` in a constructor that is kernel code."""
    draft = frame.evaluate(target.value)
    if not isinstance(draft, DraftState):
        raise _bad_target(target)
    run_in_python(draft.assign, target.attr, value)


def _no_element(value: object) -> Exception:
    if isinstance(value, tensor) and isinstance(value.type, pointer_type):
        return reject_as(
            "assignments to elements of an array",
            "an array argument becomes a pointer: write tl.store(x + i, value)",
        )
    if isinstance(value, tuple_):
        return reject_as(
            "assignments to elements of a tuple",
            "build a new one: values[:i] + (x,) + values[i+1:]",
        )
    return reject_as(
        "assignments to elements of a tile",
        "tiles are immutable: build a new one with tl.where, or tl.store through pointers",
    )


def _bad_target(target: ast.expr) -> Exception:
    if isinstance(target, ast.Attribute):
        return reject_as(
            "assignments to attributes",
            "values are immutable: build a new tuple in its place, "
            "or copy an aggregate with tl.aggregate_replace",
        )
    return starred_target()


@STATEMENTS.register(ast.AnnAssign)
def _annotated(frame: Frame, node: ast.AnnAssign) -> Exit:
    if not isinstance(node.target, ast.Name):
        raise _bad_target(node.target)
    if node.value is None:
        if is_constexpr_annotation(node.annotation):
            frame.constant_names.add(node.target.id)
        return FALLS
    value = frame.evaluate(node.value)
    if not is_constexpr_annotation(node.annotation):
        frame.assign(node.target.id, assignable(frame, value, node), node)
        return FALLS
    frame.promise(node.target.id, value, node)
    frame.assign(node.target.id, value, node)
    return FALLS


def is_constexpr_annotation(annotation: ast.expr) -> bool:
    """Whether an annotation reads `constexpr` or `<module>.constexpr`, quoted or not."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.rpartition(".")[2] == "constexpr"
    if isinstance(annotation, ast.Attribute):
        return annotation.attr == "constexpr"
    return isinstance(annotation, ast.Name) and annotation.id == "constexpr"


@STATEMENTS.register(ast.AugAssign)
def _augmented(frame: Frame, node: ast.AugAssign) -> Exit:
    if isinstance(node.target, ast.Subscript):
        raise _no_element(frame.evaluate(node.target.value))
    if not isinstance(node.target, ast.Name):
        raise _bad_target(node.target)
    current = frame.evaluate(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
    value = apply_binary(frame, node, node.op, current, frame.evaluate(node.value))
    frame.assign(node.target.id, assignable(frame, value, node), node)
    return FALLS


@STATEMENTS.register(ast.Return)
def _return(frame: Frame, node: ast.Return) -> Exit:
    value = constexpr(None) if node.value is None else frame.evaluate(node.value)
    if len(frame.lowering.frames) == 1 and plain(value) is not None:
        raise ReturnTypeMismatch("a kernel returns no value", hint="store results through pointers")
    frame.assign(VALUE, value, node)
    frame.variables[RETURN] = SET
    return LEAVES


@STATEMENTS.register(ast.Break)
def _break(frame: Frame, node: ast.Break) -> Exit:
    frame.variables[BREAK] = SET
    return LEAVES


@STATEMENTS.register(ast.Continue)
def _continue(frame: Frame, node: ast.Continue) -> Exit:
    frame.variables[CONTINUE] = SET
    return LEAVES


@STATEMENTS.register(ast.Assert)
def _assert(frame: Frame, node: ast.Assert) -> Exit:
    if isinstance(node.test, ast.Tuple) and node.test.elts:
        raise ConditionNotBoolean(
            "an assertion of a tuple is always true",
            hint='write the condition and the message without parentheses: `assert x > 0, "text"`',
            span=frame.span(node.test),
            source=frame.code.line(node.test.lineno),
        )
    test = frame.evaluate(node.test)
    message = constexpr("") if node.msg is None else frame.evaluate(node.msg)
    frame.at(node)
    if is_constant(test):
        # Not refused here: published kernels state more than they need, and Triton lets them pass.
        test = constexpr(bool(plain(test)))
    call_surface(frame, node, "device_assert", [test, message], {})
    return FALLS
