"""How many elements of a row each lane has of the tiles that a kernel loads and stores.

Tiles of one shape that are accessed in one order of dimensions share a layout, so that what is
loaded together is added without moving. Elements of two widths want two layouts: eight of 2 bytes
are one access of 16 bytes, and eight of 4 bytes are two, each of which writes half of every sector.
So the wider ones decide, and the narrower ones are accessed in fewer bytes at once.

*Source*: H200, 2026-11-29, 65536 x 1024 and 4 warps, by 8 elements and by the wider ones, TB/s:
bf16 made f32 2.42, 3.66; RMS norm of bf16 into f32 2.86, 3.48; bf16 + f32 into f32 3.20, 3.87, into
bf16 3.87, 4.03; sums down columns of bf16 into f32 2.23, 3.61; f32 made bf16 3.88, 3.86.

Rows that begin anywhere are accessed element by element, weights beside them by 16 bytes. Lanes
that hold eight elements then touch four lines with each access of one, and take four times as long.
So of the widths up to that one, the one is taken at which all accesses touch the fewest lines.

*Source*: H200, 2026-11-29, layer norm of bf16, 16384 x 4096 with rows of 4097, by 8 elements: 0.32
of Triton 3.6, which has 1 element a lane there.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tilewright.analysis.facts import MAX_ACCESS_BYTES
from tilewright.ir.annotations import annotated, decided
from tilewright.ir.effects import writes_global
from tilewright.ir.plans import AccessAttr
from tilewright.ir.regions import loops_around
from tilewright.ir.types import shape_of
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.plan.accesses import element_bytes

Key = tuple[tuple[int, ...], tuple[int, ...]]
"""The shape of an access, and its dims, the adjacent one first."""

# What loads of 8 bytes leave to narrower accesses that are more. Chosen, not measured: either
# number is right, and two elements of 2 bytes would be little at once.
_LEAST_LOADED = 4
# By definition.
_LANES, _LINE_BYTES = 32, 128
# Chosen, not measured: what a loop accesses matters more than what stands in front of it.
_RUNS_OF_A_LOOP = 8


class AccessWidths:
    """The widths of a kernel's accesses."""

    def __init__(self, kernel: FuncOp) -> None:
        accesses = [op for op in kernel.walk() if annotated(op, AccessAttr) is not None]
        self._widths: dict[Key, int] = {}
        for op in accesses:
            key = _key(op)
            self._widths[key] = max(self._widths.get(key, 1), decided(op, AccessAttr).vector)
        # What products take is copied to shared memory by 16 bytes at once, and what is computed
        # beside them is stored from there: 9 % of a kernel's time to move it first, on an H200.
        has_products = any(isinstance(op, ProductOp) for op in kernel.walk())
        for op in accesses if not has_products else ():
            if not _is_scattered(op):
                self._widths[_key(op)] = min(self._widths[_key(op)], _most(op))
        for key, most in self._widths.items() if not has_products else ():
            alike = [op for op in accesses if _key(op) == key]
            self._widths[key] = _cheapest([op for op in alike if not _is_scattered(op)], most)

    def of(self, op: Operation) -> tuple[Key, int]:
        """The shape and order of an access, and the elements in a row of a lane."""
        return _key(op), self._widths[_key(op)]


def _key(op: Operation) -> Key:
    return shape_of(op.operands[0].type), decided(op, AccessAttr).order


def _is_scattered(op: Operation) -> bool:
    return decided(op, AccessAttr).is_scattered


def _cheapest(accesses: Sequence[Operation], most: int) -> int:
    """The width up to `most` at which accesses cost least; of such ones the greatest."""
    widths = [most]
    while widths[-1] > 1:
        widths.append(widths[-1] // 2)
    return min(widths, key=lambda width: sum(_cost(op, width) for op in accesses))


def _cost(op: Operation, width: int) -> float:
    """What an access costs an element: instructions, and the lines that a warp touches in one."""
    at_once = min(decided(op, AccessAttr).vector, width)
    lines = -(-_LANES * width * element_bytes(op) // _LINE_BYTES)
    times = _RUNS_OF_A_LOOP ** sum(1 for _ in loops_around(op))
    return times * (width / at_once) * (lines + 1) / (_LANES * width)


def _most(op: Operation) -> int:
    """The elements that one access of a lane takes."""
    at_once = MAX_ACCESS_BYTES // element_bytes(op)
    return max(1, at_once if writes_global(op) else max(at_once, _LEAST_LOADED))
