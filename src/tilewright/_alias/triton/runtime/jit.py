"""`triton.runtime.jit`: kernel objects, and arrays under another element type."""

from __future__ import annotations

from typing import Protocol, cast

from tilewright.jit import JITFunction
from tilewright.language import dtype as Dtype
from tilewright.runtime.heuristics import Kernel as KernelInterface
from tilewright.support.dataclass import dataclass


class _HasAddress(Protocol):
    def data_ptr(self) -> int: ...


class _HasInterface(Protocol):
    __array_interface__: dict[str, tuple[int, bool]]


@dataclass(frozen=True)
class MockTensor:
    """An array that `warmup` compiles for: a dtype, a well-aligned address and no memory."""

    dtype: object
    shape: tuple[int, ...] | None = None

    def data_ptr(self) -> int:
        """An address that is a multiple of 16."""
        return 0


@dataclass(frozen=True)
class TensorWrapper:
    """The memory of an array seen as elements of another type; made by `reinterpret`."""

    base: object
    dtype: Dtype

    def data_ptr(self) -> int:
        """The address of the first element."""
        if hasattr(self.base, "data_ptr"):
            return cast("_HasAddress", self.base).data_ptr()
        return cast("_HasInterface", self.base).__array_interface__["data"][0]

    @property
    def shape(self) -> object:
        """The extents of the array below."""
        return getattr(self.base, "shape", ())


def reinterpret(tensor: object, dtype: Dtype) -> object:
    """The memory of `tensor` as elements of `dtype`, for kernels to load and store."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    return TensorWrapper(base, dtype)


__all__ = ["JITFunction", "KernelInterface", "MockTensor", "TensorWrapper", "reinterpret"]
