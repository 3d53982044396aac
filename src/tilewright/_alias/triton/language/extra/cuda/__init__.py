"""`triton.language.extra.cuda`: functions of NVIDIA GPUs."""

from __future__ import annotations

from tilewright.language.extra import cuda as _cuda

from ...._names import public_names, refuse
from . import libdevice as libdevice

globals().update(public_names(_cuda, __name__, _cuda.__all__))
__getattr__ = refuse(
    __name__,
    {
        "convert_custom_float8_sm70": "use x.to(tl.float8e4nv)",
        "convert_custom_float8_sm80": "use x.to(tl.float8e4nv)",
    },
)
