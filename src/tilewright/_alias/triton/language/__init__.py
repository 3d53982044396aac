"""`triton.language`: the tile language."""

from __future__ import annotations

import types as _types

from .._names import refuse
from . import core as core
from . import extra as extra
from . import math as math
from . import random as random
from . import standard as standard
from . import target_info as target_info

_MODULES = ("core", "extra", "math", "random", "standard", "target_info")
# What `core` imports for itself, and the surface of the module that only writers of ops use.
_HIDDEN = ("Callable", "TypeVar", "annotations", "public_names", "refuse")
_LANGUAGE = {
    name: value
    for name, value in vars(core).items()
    if not (name.startswith("_") or name in _HIDDEN or isinstance(value, _types.ModuleType))
}
# torch writes a dtype that a kernel imports by its short name, as `tl.fp32`.
_SHORT = {d.name: d for d in vars(core).values() if isinstance(d, core.dtype)}
globals().update({**_LANGUAGE, **_SHORT})

__getattr__ = refuse(__name__, {"semantic": "there is no builder object; write a jit function"})

__all__ = sorted({*_LANGUAGE, *_MODULES})  # pyright: ignore[reportUnsupportedDunderAll]
