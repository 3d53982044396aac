"""What the schedule leaves on ops for later: runs of equals, sizes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

from tilewright.ir.annotations import missing
from tilewright.ir.attributes import integer_array, integers_of

_RUNS, _SHARED = "equal_runs", "shared_bytes"


def set_equal_runs(op: Operation, runs: Sequence[int]) -> None:
    """Note how many elements in a row are equal in the op's results, for each dim."""
    op.attributes[_RUNS] = integer_array(runs)


def equal_runs(op: Operation) -> tuple[int, ...]:
    """The runs that `set_equal_runs` noted; () where none are."""
    return integers_of(op.attributes.get(_RUNS))


def set_shared_bytes(kernel: Operation, count: int) -> None:
    """Note the shared memory that a kernel takes."""
    kernel.attributes[_SHARED] = IntegerAttr(count, i32)


def shared_bytes(kernel: Operation) -> int:
    """The shared memory that a kernel takes. *Raises*: PlanMissing before it has its place."""
    count = kernel.attributes.get(_SHARED)
    if not isinstance(count, IntegerAttr):
        raise missing(kernel, "its shared memory has no place", "run `place-shared` first")
    return count.value.data
