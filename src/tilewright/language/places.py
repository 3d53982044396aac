"""Where ops run in a schedule: `with tl.stage(…):` and `with tl.async_task(…):`.

The classes only name the constructs: a kernel's `with` reads them at compile time. They change no
result; a target without schedules ignores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

from tilewright.support.errors import HostCall


class stage:
    """The stage and cluster of what is inside, in the loop that it stands in.

    Iteration j of an op of stage s runs in body j + s of the pipelined loop, and within a body
    ops run by cluster. Loads, products, stores, reductions and casts have places; addresses and
    masks go with what needs them. Constraints: compile-time integers from 0 to 127.
    Raises: `PlanRefused` where the machine pipelines and dependences or memory do not allow it.
    """

    __tilewright_op__ = "stage"

    def __init__(self, stage: int, cluster: int = 0) -> None:
        self.stage, self.cluster = stage, cluster

    def __enter__(self) -> NoReturn:
        _only_in_kernels("stage")

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
        _only_in_kernels("async_task")

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Nothing was entered."""


def _only_in_kernels(name: str) -> NoReturn:
    raise HostCall(f"tl.{name} is entered outside of a kernel")
