"""Functions beyond the common language."""

from __future__ import annotations

from tilewright.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]
