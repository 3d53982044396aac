"""`triton.language.extra.cuda.libdevice`: the functions of `extra.libdevice`."""

from __future__ import annotations

from ...._names import refuse
from .. import libdevice as _libdevice

globals().update({n: v for n, v in vars(_libdevice).items() if not n.startswith("_")})

__getattr__ = refuse(__name__, {})
