"""`triton.tools`: host-side helpers."""

from __future__ import annotations

from .._names import refuse
from . import disasm, tensor_descriptor

__getattr__ = refuse(
    __name__,
    {
        "LinearLayout": "use tilewright.layout.linear.LinearLayout",
        "mxfp": "convert with ml_dtypes.float4_e2m1fn and ml_dtypes.float8_e8m0fnu",
        "ragged_tma": "describe each part with a TensorDescriptor of its own",
        "experimental_descriptor": "use triton.tools.tensor_descriptor.TensorDescriptor",
    },
)

__all__ = ["disasm", "tensor_descriptor"]
