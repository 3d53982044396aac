"""`triton.errors`: the root of every error."""

from __future__ import annotations

from tilewright.support.errors import TilewrightError as TritonError

__all__ = ["TritonError"]
