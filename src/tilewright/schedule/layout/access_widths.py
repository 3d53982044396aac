"""How many elements of a row each lane has of the tiles that a kernel loads and stores.

Tiles of one shape that are accessed in one order of dimensions share a layout, so that what is
loaded together is added without moving. Elements of two widths want two layouts: eight of 2 bytes
are one access of 16 bytes, and eight of 4 bytes are two, each of which writes half of every sector.
So the wider ones decide, and the narrower ones are accessed in fewer bytes at once.

*Source*: H200, 2026-11-29, 65536 x 1024 and 4 warps, by 8 elements and by the wider ones, TB/s:
bf16 made f32 2.42, 3.66; RMS norm of bf16 into f32 2.86, 3.48; bf16 + f32 into f32 3.20, 3.87, into
bf16 3.87, 4.03; sums down columns of bf16 into f32 2.23, 3.61; f32 made bf16 3.88, 3.86.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.analysis.facts import MAX_ACCESS_BYTES
from tilewright.ir.annotations import annotated, decided
from tilewright.ir.effects import writes_global
from tilewright.ir.plans import AccessAttr
from tilewright.ir.types import shape_of
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.plan.accesses import element_bytes

Key = tuple[tuple[int, ...], tuple[int, ...]]
"""The shape of an access, and its dims, the adjacent one first."""

# What loads of 8 bytes leave to narrower accesses. Chosen, not measured: either number is right,
# and two elements of 2 bytes would be little at once.
_LEAST_LOADED = 4


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
            if not decided(op, AccessAttr).is_scattered:
                self._widths[_key(op)] = min(self._widths[_key(op)], _most(op))

    def of(self, op: Operation) -> tuple[Key, int]:
        """The shape and order of an access, and the elements in a row of a lane."""
        return _key(op), self._widths[_key(op)]


def _key(op: Operation) -> Key:
    return shape_of(op.operands[0].type), decided(op, AccessAttr).order


def _most(op: Operation) -> int:
    """The elements that one access of a lane takes."""
    at_once = MAX_ACCESS_BYTES // element_bytes(op)
    return max(1, at_once if writes_global(op) else max(at_once, _LEAST_LOADED))
