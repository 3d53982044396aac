"""Arrays as launches see them: mock arrays, and memory under another element type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from tilewright.frontend.arrays import element_named
from tilewright.language import dtype as Dtype
from tilewright.support.dataclass import dataclass


class _HasAddress(Protocol):
    def data_ptr(self) -> int: ...


class _HasInterface(Protocol):
    __array_interface__: dict[str, tuple[int, bool]]


_PACKAGES = ("torch", "numpy")


@dataclass(frozen=True)
class MockTensor:
    """An array that `warmup` compiles for: a dtype, a well-aligned address and no memory."""

    dtype: object
    shape: Sequence[int] | None = None

    @staticmethod
    def wrap_dtype(arg: object) -> object:
        """A mock array for the dtype of an array package, anything else unchanged."""
        is_dtype = any(
            cls.__name__ == "dtype" and cls.__module__ in _PACKAGES for cls in type(arg).__mro__
        )
        is_named = is_dtype and element_named(str(arg)) is not None
        return MockTensor(arg) if is_named else arg

    def stride(self) -> tuple[int, ...]:
        """The strides of a contiguous array of this shape."""
        strides: list[int] = [1]
        for extent in reversed(tuple(self.shape or ())[1:]):
            strides.append(strides[-1] * extent)
        return tuple(reversed(strides))

    @staticmethod
    def data_ptr() -> int:
        """An address that is a multiple of 16."""
        return 0

    @staticmethod
    def ptr_range() -> int:
        """The size of the memory in bytes: none."""
        return 0


class TensorWrapper:
    """The memory of an array seen as elements of another type; made by `reinterpret`."""

    def __init__(self, base: object, dtype: Dtype) -> None:
        self.base = base
        self.dtype = dtype

    def data_ptr(self) -> int:
        """The address of the first element."""
        if hasattr(self.base, "data_ptr"):
            return cast("_HasAddress", self.base).data_ptr()
        return cast("_HasInterface", self.base).__array_interface__["data"][0]

    @property
    def data(self) -> object:
        """The array below; what is assigned takes its place, as with a tensor of torch."""
        return self.base

    @data.setter
    def data(self, array: object) -> None:
        self.base = array.base if isinstance(array, TensorWrapper) else array

    @property
    def flags(self) -> object:
        """What NumPy's array below may be used for; None for other arrays."""
        return getattr(self.base, "flags", None)

    @property
    def device(self) -> object:
        """The device of the array below."""
        return getattr(self.base, "device", "cpu")

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a GPU."""
        return bool(getattr(self.base, "is_cuda", False))

    @property
    def shape(self) -> object:
        """The extents of the array below."""
        return getattr(self.base, "shape", ())

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def stride(self, *args: int) -> object:
        """The strides of the array below."""
        return self._call("stride", *args)

    def cpu(self) -> TensorWrapper:
        """The elements in memory of the host."""
        return TensorWrapper(self._call("cpu"), self.dtype)

    def clone(self) -> TensorWrapper:
        """A copy of the elements."""
        return TensorWrapper(self._call("clone"), self.dtype)

    def to(self, device: object) -> TensorWrapper:
        """The elements on a device."""
        return TensorWrapper(self._call("to", device), self.dtype)

    def new_empty(self, sizes: Sequence[int]) -> TensorWrapper:
        """An array of this element type."""
        return TensorWrapper(self._call("new_empty", sizes), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        """Take over the elements of another array."""
        self._call("copy_", other.base)

    def _call(self, name: str, *args: object) -> object:
        return cast("Callable[..., object]", getattr(self.base, name))(*args)


def reinterpret(tensor: object, dtype: Dtype) -> object:
    """The memory of `tensor` as elements of `dtype`, for kernels to load and store.

    An array whose elements have that type already is returned as it is.
    """
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    if not (hasattr(base, "data_ptr") or hasattr(base, "__array_interface__")):
        raise TypeError(f"Cannot reinterpret a {type(tensor)}.")
    is_same = isinstance(tensor, TensorWrapper) and element_named(str(_dtype(base))) == dtype
    return base if is_same else TensorWrapper(base, dtype)


def _dtype(value: object) -> object:
    return getattr(value, "dtype", "")
