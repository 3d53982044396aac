"""`triton.language.extra.hip`: the place where scripts for AMD GPUs find libdevice."""

from __future__ import annotations

from ...._names import refuse
from . import libdevice as libdevice

__getattr__ = refuse(__name__, {})
