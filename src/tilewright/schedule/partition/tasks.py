"""What an author's `tl.async_task` asks of the roles of a kernel: who loads, and how many compute.

Task 0 is the role that loads; tasks 1 to n compute on rows of their own, so every product stands in
all of them. What no task holds goes where it is needed: a kernel with products is split also where
the tasks hold its loads alone, or nothing but what is computed with the products.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.effects import global_access
from tilewright.ir.locations import describe, span_of
from tilewright.ir.schedule_attributes import tasks_of
from tilewright.ops.function import FuncOp
from tilewright.schedule.partition.refusal import Refused
from tilewright.schedule.plan.anchors import kind_of
from tilewright.support.errors import PlanRefused

# By definition: the first task is the one that loads.
_LOADS = (0,)
_HINT = "put loads in task 0, and products and stores in the tasks from 1 on, all of them together"


def has_tasks(kernel: FuncOp) -> bool:
    """Whether an author says of any op in which task it runs."""
    return any(tasks_of(op) for op in kernel.walk())


def ask_for_roles(kernel: FuncOp) -> bool:
    """Whether tasks split a kernel: it has products, and a task loads or several compute.

    Elsewhere, as around a few scalars or in a kernel without products, one program does it all.
    """
    ops = list(kernel.walk())
    if not any(kind_of(op) == "dot" for op in ops):
        return False
    return any(_computes(tasks_of(op)) or _is_load_of_task(op) for op in ops)


def _computes(tasks: tuple[int, ...]) -> bool:
    return bool(tasks) and 0 not in tasks


def _is_load_of_task(op: Operation) -> bool:
    return tasks_of(op) == _LOADS and kind_of(op) == "load"


def groups_of_tasks(kernel: FuncOp, asked: int) -> int:
    """How many groups compute: as the tasks say, or else `asked`.

    *Raises*: PlanRefused for tasks that are no roles, and for two numbers of groups.
    """
    placed = [(op, tasks_of(op)) for op in kernel.walk() if tasks_of(op)]
    if not placed:
        return asked
    for op, tasks in placed:
        problem = _problem(op, tasks)
        if problem:
            raise _refused(op, f"{_called(op)} {problem}", _HINT)
    products = [(op, tasks) for op, tasks in placed if kind_of(op) == "dot"]
    if not products and ask_for_roles(kernel):
        products = [(op, tasks) for op, tasks in placed if _computes(tasks)]
    if not products:
        return asked
    first, found = products[0]
    for op, tasks in products[1:]:
        if tasks != found:
            where = f"{_called(first)} in the tasks {list(found)}"
            raise _refused(op, f"{_called(op)} runs in the tasks {list(tasks)}, and {where}", _HINT)
    if found != tuple(range(1, len(found) + 1)):
        text = f"{_called(first)} runs in the tasks {list(found)}, not from 1 on"
        raise _refused(first, text, _HINT)
    if asked not in (0, len(found)):
        text = f"{_called(first)} runs in {len(found)} tasks, and `num_consumer_groups` is {asked}"
        raise _refused(first, text, "leave the option out, or say the same number")
    return len(found)


def _problem(op: Operation, tasks: tuple[int, ...]) -> str:
    """Why an op does not run in its tasks; '' where it does, or goes where it is needed."""
    access = global_access(op)
    is_box = access is not None and "descriptor" in op.name
    if is_box and kind_of(op) == "load" and tasks != _LOADS:
        return f"is in the tasks {list(tasks)}, and its block is loaded by task 0 for all of them"
    if 0 not in tasks:
        return ""
    if len(tasks) > 1:
        return f"is in the tasks {list(tasks)}, of which 0 loads and the others compute"
    if kind_of(op) == "load" and not is_box:
        return "is in task 0, whose loads go through tensor descriptors"
    if kind_of(op) == "dot" or (access is not None and access.writes):
        return "is in task 0, which loads and does nothing else"
    return ""


def refused_tasks(refused: Refused) -> PlanRefused:
    """The error for tasks of a kernel that cannot be split into roles."""
    text = f"the kernel cannot run as the tasks that it has: {refused.reason}"
    return _refused(refused.op, text, "leave `tl.async_task` out to have the kernel in one piece")


def _called(op: Operation) -> str:
    return f"the {kind_of(op)} at {describe(op)}"


def _refused(op: Operation, message: str, hint: str) -> PlanRefused:
    span, chain = span_of(op)
    return PlanRefused(message, argument="task_ids", hint=hint, span=span, chain=chain)
