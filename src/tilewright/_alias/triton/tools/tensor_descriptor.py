"""`triton.tools.tensor_descriptor`: descriptors made by the host."""

from __future__ import annotations

from tilewright.runtime.tensor_descriptor import TensorDescriptor

__all__ = ["TensorDescriptor"]
