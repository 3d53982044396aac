"""`triton.runtime.autotuner`: tuning and heuristics."""

from __future__ import annotations

from tilewright.runtime.autotune import Autotuner, autotune
from tilewright.runtime.config import Config
from tilewright.runtime.heuristics import Heuristics, heuristics
from tilewright.runtime.tuning import NoUsableConfig as AutotunerError

__all__ = ["Autotuner", "AutotunerError", "Config", "Heuristics", "autotune", "heuristics"]
