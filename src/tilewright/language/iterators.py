"""Heads of statements: `range`, `static_range`, `condition`, and where ops of a `with` run.

The classes only name the constructs; `for`, `while` and `with` of kernels read them when compiled.
On the host none of them can be iterated or entered. `stage` and `async_task` change no result, and
a target without schedules ignores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NoReturn

from tilewright.language.values import constexpr
from tilewright.support.errors import HostCall

RANGE_HINTS = (
    "num_stages",
    "loop_unroll_factor",
    "disallow_acc_multi_buffer",
    "flatten",
    "warp_specialize",
    "disable_licm",
    "schedule",
)


class range:
    """A loop at run time, with hints to the scheduler that never change the result.

    `num_stages` asks for that many loads in flight, `warp_specialize` splits the loop into roles.
    `schedule` is the text of the loop's schedule, in which `load#0` is its first load and `for#0`
    the loop. `loop_unroll_factor`, `flatten`, `disallow_acc_multi_buffer` and `disable_licm` are
    taken so that kernels that have them run; nothing follows from them, as `explain` says.
    Constraints: a negative step must be a constexpr; hints are compile-time constants or None.
    """

    __tilewright_op__ = "range"

    def __init__(
        self,
        arg1: object,
        arg2: object = None,
        step: object = None,
        num_stages: int | constexpr | None = None,
        loop_unroll_factor: int | constexpr | None = None,
        disallow_acc_multi_buffer: bool | constexpr = False,
        flatten: bool | constexpr = False,
        warp_specialize: bool | constexpr = False,
        disable_licm: bool | constexpr = False,
        schedule: str | constexpr | None = None,
    ) -> None:
        self.bounds = (arg1, arg2, step)
        self.hints = {
            "num_stages": num_stages,
            "loop_unroll_factor": loop_unroll_factor,
            "disallow_acc_multi_buffer": disallow_acc_multi_buffer,
            "flatten": flatten,
            "warp_specialize": warp_specialize,
            "disable_licm": disable_licm,
            "schedule": schedule,
        }

    def __iter__(self) -> Iterator[Any]:
        _only_in_kernels("range")


class static_range:
    """A loop that is unrolled at compile time: bounds and induction variable are constexprs."""

    __tilewright_op__ = "static_range"

    def __init__(self, arg1: object, arg2: object = None, step: object = None) -> None:
        self.bounds = (arg1, arg2, step)

    def __iter__(self) -> Iterator[Any]:
        _only_in_kernels("static_range")


class condition:
    """The test of a `while`, with hints: `while tl.condition(x < n, disable_licm=True):`."""

    __tilewright_op__ = "condition"

    def __init__(self, arg1: object, disable_licm: bool | constexpr = False) -> None:
        self.test = arg1
        self.disable_licm = disable_licm


class stage:
    """The stage and cluster of what is inside, in the loop that it stands in.

    Iteration j of an op of stage s runs in body j + s of the pipelined loop, and within a body
    ops run by cluster. Loads, products, stores, reductions and casts have places; addresses and
    masks go with what needs them. Constraints: compile-time integers from 0 to 127.
    Raises: `PlanRefused` where the machine pipelines and dependences or memory do not allow it.
    """

    __tilewright_op__ = "stage"

    def __init__(self, stage: int | constexpr, cluster: int | constexpr = 0) -> None:
        self.stage, self.cluster = stage, cluster

    def __enter__(self) -> NoReturn:
        _only_in_kernels("stage", "entered")

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Nothing was entered."""


class async_task:
    """The tasks that run what is inside: 0 loads, and 1, 2 and 3 compute on rows of their own.

    A kernel with tasks runs as roles, as with `num_consumer_groups`. Constraints: a list or tuple
    of compile-time integers from 0 to 3. Raises: `PlanRefused` where the machine has roles and
    they cannot be had so.
    """

    __tilewright_op__ = "async_task"

    def __init__(self, task_ids: Sequence[int]) -> None:
        self.task_ids = task_ids

    def __enter__(self) -> NoReturn:
        _only_in_kernels("async_task", "entered")

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Nothing was entered."""


def _only_in_kernels(name: str, verb: str = "iterated") -> NoReturn:
    raise HostCall(f"tl.{name} is {verb} outside of a kernel")
