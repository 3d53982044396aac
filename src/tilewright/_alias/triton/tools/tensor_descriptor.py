"""`triton.tools.tensor_descriptor`: descriptors made by the host."""

from __future__ import annotations

from tilewright.runtime.tensor_descriptor import TensorDescriptor

from .._names import refuse

__getattr__ = refuse(__name__, {"TensorDescriptorIm2Col": "load the window's rows one by one"})

__all__ = ["TensorDescriptor"]
