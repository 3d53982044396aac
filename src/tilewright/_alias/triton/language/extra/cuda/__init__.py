"""`triton.language.extra.cuda`: the place where older scripts find libdevice."""

from __future__ import annotations

from . import libdevice

__all__ = ["libdevice"]
