"""`triton.language`: the tile language."""

from __future__ import annotations

from .._names import refuse
from . import core as core
from . import extra as extra
from . import math as math
from . import random as random
from . import standard as standard
from . import target_info as target_info

_HIDDEN = ("annotations", "refuse", "public_names")
globals().update(
    {
        name: value
        for name, value in vars(core).items()
        if not name.startswith("_") and name not in _HIDDEN and not hasattr(value, "__path__")
    }
)
# torch writes a dtype that a kernel imports by its short name, as `tl.fp32`.
globals().update({d.name: d for d in vars(core).values() if isinstance(d, core.dtype)})

__getattr__ = refuse(__name__, {"semantic": "there is no builder object; write a jit function"})
