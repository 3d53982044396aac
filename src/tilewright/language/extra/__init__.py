"""Functions beyond the common language."""

from __future__ import annotations

from tilewright.language.extra import libdevice

__all__ = ["libdevice"]
