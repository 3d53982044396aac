"""`triton.language.extra.cuda`: functions of NVIDIA GPUs."""

from __future__ import annotations

import tilewright.language.extra.cuda as _cuda

from ...._names import public_names, refuse
from . import libdevice as libdevice

globals().update(public_names(_cuda, __name__, _cuda.__all__))

_CONVERT = "use x.to(tl.float8e4nv)"
__getattr__ = refuse(
    __name__,
    {"convert_custom_float8_sm70": _CONVERT, "convert_custom_float8_sm80": _CONVERT},
)
