"""Which kernels are persistent: their programs stay on an SM and run one tile after the other.

The attribute `tw.persistent` of a `tt.func` is how many programs a launch starts at most, where one
fits on each SM; `runtime/grid.py` says what a launch makes of its grid.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

_PERSISTENT = "tw.persistent"


def set_most_programs(kernel: Operation, most: int) -> None:
    """Note that a kernel is persistent, with at most so many programs."""
    kernel.attributes[_PERSISTENT] = IntegerAttr(most, i32)


def clear_most_programs(kernel: Operation) -> None:
    """Note that a kernel is not persistent."""
    kernel.attributes.pop(_PERSISTENT, None)


def most_programs(kernel: Operation) -> int:
    """How many programs of a kernel run at most; 0 for as many as the grid has."""
    most = kernel.attributes.get(_PERSISTENT)
    return most.value.data if isinstance(most, IntegerAttr) else 0
