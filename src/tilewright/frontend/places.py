"""`with tl.stage(…):` and `with tl.async_task(…):`: ops are annotated with where they run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from tilewright.frontend.constants import OpRef
from tilewright.frontend.control_flow import lower_block
from tilewright.frontend.frame import STATEMENTS, Exit, Frame
from tilewright.frontend.program import Parameter
from tilewright.frontend.sequences import iterate
from tilewright.frontend.signature import bind
from tilewright.frontend.subset import reject, reject_as
from tilewright.frontend.values import describe, is_constant, plain
from tilewright.ir.schedule import Place
from tilewright.ir.schedule_attributes import PLACE, TASKS, PlaceAttr
from tilewright.language.core import constexpr
from tilewright.ops.builder import integer_property
from tilewright.support.errors import NotConstexpr, TilewrightError

_STAGE = [Parameter("stage"), Parameter("cluster", has_default=True)]
_TASK = [Parameter("task_ids")]
_MOST = 127
_MOST_TASK = 3


@STATEMENTS.register(ast.With)
def _with(frame: Frame, node: ast.With) -> Exit:
    found: dict[str, Attribute] = {}
    for item in node.items:
        if item.optional_vars is not None:
            raise reject_as("`with … as`", "leave out `as`: there is no value to name")
        found |= _annotation(frame, item.context_expr, node)
    with frame.builder.annotating(found):
        return lower_block(frame, node.body)


def _annotation(frame: Frame, node: ast.expr, statement: ast.With) -> dict[str, Attribute]:
    """What a context manager writes on the ops inside of it."""
    function = frame.evaluate(node.func) if isinstance(node, ast.Call) else None
    read = _READERS.get(function) if isinstance(function, OpRef) else None
    if read is None or not isinstance(node, ast.Call):
        raise reject(statement)
    positional = [frame.evaluate(argument) for argument in node.args]
    keywords = {k.arg or "**": frame.evaluate(k.value) for k in node.keywords}
    frame.at(node)
    try:
        return read(positional, keywords)
    except TilewrightError as error:
        frame.place(error, node)
        raise


def _read_stage(
    positional: Sequence[object], keywords: Mapping[str, object]
) -> dict[str, Attribute]:
    bound = bind("tl.stage", _STAGE, positional, keywords, lambda p: constexpr(0))
    stage, cluster = (
        _number("tl.stage()", f"the {name}", bound[name], _MOST) for name in ("stage", "cluster")
    )
    return {PLACE: PlaceAttr(Place(stage, cluster))}


def _read_tasks(
    positional: Sequence[object], keywords: Mapping[str, object]
) -> dict[str, Attribute]:
    bound = bind("tl.async_task", _TASK, positional, keywords, lambda p: constexpr(0))
    items = iterate(bound["task_ids"])
    tasks = {_number("tl.async_task()", "a task", item, _MOST_TASK) for item in items}
    return {TASKS: ArrayAttr([integer_property(task) for task in sorted(tasks)])}


_READERS = {OpRef("stage"): _read_stage, OpRef("async_task"): _read_tasks}


def _number(function: str, what: str, value: object, most: int) -> int:
    known = plain(value)
    is_number = is_constant(value) and isinstance(known, int) and not isinstance(known, bool)
    if not is_number or not 0 <= int(str(known)) <= most:
        raise NotConstexpr(
            f"{function}: {what} is {describe(value)}",
            hint=f"it is an integer from 0 to {most} that is known at compile time",
        )
    return int(str(known))
