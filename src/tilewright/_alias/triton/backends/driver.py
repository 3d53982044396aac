"""`triton.backends.driver`: the base of drivers."""

from __future__ import annotations

from ..runtime.driver import DriverBase as DriverBase
from ..runtime.driver import DriverBase as GPUDriver

__all__ = ["DriverBase", "GPUDriver"]
