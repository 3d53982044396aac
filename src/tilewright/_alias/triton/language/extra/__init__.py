"""`triton.language.extra`: functions beyond the common language."""

from __future__ import annotations

from . import cuda as cuda
from . import hip as hip
from . import libdevice as libdevice
