"""Whether the elements of a pointer tile lie at addresses of their own.

What reads and writes through one pointer tile may do so part by part only if no later part reads
what an earlier one has written: no address may occur twice. Strides s₀ … over extents n₀ …, taken
from the smallest on, give every element an address of its own where each exceeds what those before
it span: |sₖ| > Σ |sⱼ| · (nⱼ - 1) for j < k.
"""

from __future__ import annotations

from enum import Enum

from xdsl.ir import SSAValue

from tilewright.analysis.affine.nest import as_nest_access
from tilewright.analysis.affine.stride import Stride
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.types import shape_of


class Apart(Enum):
    """What is known about the addresses of a pointer tile: all different, or not."""

    YES = "yes"
    NO = "no"
    TEST = "test"


def find_apart(structure: AffineTiles, ptr: SSAValue) -> Apart:
    """What the strides of a pointer tile tell; TEST: their values at run time can tell."""
    moving = moving_strides(structure, ptr)
    if moving is None:
        return Apart.NO
    known = [(stride.as_int(), extent) for stride, extent in moving]
    fixed = [(abs(step), extent) for step, extent in known if step is not None]
    if fixed_span(fixed) is None:
        return Apart.NO
    return Apart.YES if len(fixed) == len(known) else Apart.TEST


def moving_strides(structure: AffineTiles, ptr: SSAValue) -> list[tuple[Stride, int]] | None:
    """Stride and extent of the dimensions with more than one element; None if not affine."""
    access = as_nest_access(structure.of(ptr))
    if isinstance(access, str) or access.jumping:
        return None
    pairs = zip(access.strides, shape_of(ptr.type), strict=True)
    return [(stride, extent) for stride, extent in pairs if extent > 1]


def fixed_span(steps: list[tuple[int, int]]) -> int | None:
    """How far apart the first and the last element are; None where two elements coincide."""
    span = 0
    for step, extent in sorted(steps):
        if step <= span:
            return None
        span += step * (extent - 1)
    return span
