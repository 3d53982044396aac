"""Math functions of one NVIDIA lane: the special function unit, and polynomials elsewhere."""

from __future__ import annotations

from tilewright.targets.nvidia.math.accuracy import ULP_BOUND
from tilewright.targets.nvidia.math.emitter import NvidiaMath

__all__ = ["ULP_BOUND", "NvidiaMath"]
