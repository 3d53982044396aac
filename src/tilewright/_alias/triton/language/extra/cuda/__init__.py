"""`triton.language.extra.cuda`: functions of NVIDIA GPUs."""

from __future__ import annotations

from ...._names import refuse
from . import libdevice as libdevice

_GPU_ONLY = "available once the kernel is compiled for an NVIDIA GPU"
__getattr__ = refuse(
    __name__,
    {
        "globaltimer": _GPU_ONLY,
        "smid": _GPU_ONLY,
        "num_threads": _GPU_ONLY,
        "num_warps": _GPU_ONLY,
        "gdc_wait": _GPU_ONLY,
        "gdc_launch_dependents": _GPU_ONLY,
        "convert_custom_float8_sm70": "use x.to(tl.float8e4nv)",
        "convert_custom_float8_sm80": "use x.to(tl.float8e4nv)",
    },
)
