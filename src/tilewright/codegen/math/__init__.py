"""Math functions on vectors, as LLVM text: our own polynomials with stated error bounds."""

from __future__ import annotations

from tilewright.codegen.math.accuracy import ABSOLUTE_BOUND, LIBRARY_BOUND, ULP_BOUND
from tilewright.codegen.math.emitter import MathEmitter

__all__ = ["ABSOLUTE_BOUND", "LIBRARY_BOUND", "ULP_BOUND", "MathEmitter"]
