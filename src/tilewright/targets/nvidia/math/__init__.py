"""Math functions of one NVIDIA lane: the special function unit, and polynomials elsewhere."""

from __future__ import annotations

from tilewright.targets.nvidia.math.accuracy import FAST_BOUND, ULP_BOUND
from tilewright.targets.nvidia.math.emitter import NvidiaMath

__all__ = ["FAST_BOUND", "ULP_BOUND", "NvidiaMath"]
