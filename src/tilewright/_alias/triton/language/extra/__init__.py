"""`triton.language.extra`: functions beyond the common language."""

from __future__ import annotations

from . import cuda, libdevice

__all__ = ["cuda", "libdevice"]
