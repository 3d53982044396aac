"""Which kernels are persistent: their programs stay on an SM and run one tile after the other.

And which are launched in clusters of programs that load for each other (`tw.cluster`).

The attribute `tw.persistent` of a `tt.func` is how many programs a launch starts at most, where one
fits on each SM; `runtime/grid.py` says what a launch makes of its grid.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

_PERSISTENT, _CLUSTER = "tw.persistent", "tw.cluster"


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


def set_cluster(kernel: Operation, size: int) -> None:
    """Note that so many programs of a kernel, one after the other, are a cluster."""
    kernel.attributes[_CLUSTER] = IntegerAttr(size, i32)


def cluster_of(kernel: Operation) -> int:
    """How many programs of a kernel load for each other; 1 where each is for itself."""
    size = kernel.attributes.get(_CLUSTER)
    return size.value.data if isinstance(size, IntegerAttr) else 1
