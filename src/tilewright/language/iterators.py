"""Loops of the language: `range` with hints, `static_range`, and `condition` for `while`.

The classes only name the constructs: a kernel's `for` reads them at compile time. On the host
`range` and `static_range` cannot be iterated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

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

    `num_stages` asks for that many loads in flight, `loop_unroll_factor` for unrolling,
    `flatten` merges a nest of loops, `warp_specialize` splits the loop into roles. `schedule` is
    the text of the loop's schedule, in which `load#0` is its first load and `for#0` the loop.
    Constraints: a negative step must be a constexpr; hints are compile-time constants or None.
    """

    __tilewright_op__ = "range"

    def __init__(
        self,
        arg1: object,
        arg2: object = None,
        step: object = None,
        num_stages: int | None = None,
        loop_unroll_factor: int | None = None,
        disallow_acc_multi_buffer: bool = False,
        flatten: bool = False,
        warp_specialize: bool = False,
        disable_licm: bool = False,
        schedule: str | None = None,
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

    def __iter__(self) -> Iterator[object]:
        _only_in_kernels("range")


class static_range:
    """A loop that is unrolled at compile time: bounds and induction variable are constexprs."""

    __tilewright_op__ = "static_range"

    def __init__(self, arg1: object, arg2: object = None, step: object = None) -> None:
        self.bounds = (arg1, arg2, step)

    def __iter__(self) -> Iterator[object]:
        _only_in_kernels("static_range")


class condition:
    """The test of a `while`, with hints: `while tl.condition(x < n, disable_licm=True):`."""

    __tilewright_op__ = "condition"

    def __init__(self, arg1: object, disable_licm: bool = False) -> None:
        self.test = arg1
        self.disable_licm = disable_licm


def _only_in_kernels(name: str) -> NoReturn:
    raise HostCall(f"tl.{name} is iterated outside of a kernel")
