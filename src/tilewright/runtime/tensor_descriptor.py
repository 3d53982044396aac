"""Tensor descriptors made by the host: a strided tensor that kernels read in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import SupportsIndex, cast

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    ArgumentNotSupported,
    InvalidOption,
    NotPowerOfTwo,
    ShapeMismatch,
)
from tilewright.support.tile_extents import is_extent_of_groups

MAX_RANK = 5
_ALIGNMENT_BYTES = 16
_MAX_EXTENT = 2**31 - 1
_PADDINGS = ("zero", "nan")
_SEQUENCES = frozenset(("shape", "strides", "block_shape"))
_SET_BLOCK = "pass the block that the kernel loads, or set `block_shape` before the launch"


@dataclass
class TensorDescriptor:
    """A tensor in memory, its shape and strides in elements, and the block that kernels use.

    Passed to a kernel it is what `tl.make_tensor_descriptor` gives there. `base` is an array of
    any package; nothing is copied, and the descriptor keeps `base` alive. `block_shape` may be
    assigned again, by the hook of a configuration say. `round_f32_to_tf32` is accepted: loads here
    give every bit, and `dot` rounds what it needs to.
    Constraints: 1 to 5 dimensions; positive extents of at most 2147483647; the last stride is 1,
    the others multiples of 16 bytes. When a kernel is launched, moreover: block extents powers of
    two, the last with at least 16 bytes; the address of `base` a multiple of 16.
    Raises: ShapeMismatch, NotPowerOfTwo, InvalidOption, ArgumentNotSupported.
    """

    base: object
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __setattr__(self, name: str, value: object) -> None:
        # As tuples they compare equal at the next launch, which then needs no other look.
        if name in _SEQUENCES:
            value = _integers(name, cast("Sequence[SupportsIndex]", value))
        self.__dict__[name] = value

    def __post_init__(self) -> None:
        size_bytes = _element_bytes(self.base)
        self._check_rank("strides", self.strides)
        self._check_shape()
        self._check_strides(size_bytes)
        self._check_rank("block_shape", self.block_shape)
        if self.padding not in _PADDINGS:
            raise InvalidOption(
                f"TensorDescriptor: `padding` is {self.padding!r}; it must be 'zero' or 'nan'",
                argument="padding",
            )

    @staticmethod
    def from_tensor(
        tensor: object,
        block_shape: Sequence[int],
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> TensorDescriptor:
        """The descriptor of a whole array. Raises: as the constructor."""
        shape = getattr(tensor, "shape", None)
        if shape is None:
            raise ArgumentNotSupported(f"{type(tensor).__name__} has no shape")
        return TensorDescriptor(
            tensor, shape, _strides_of(tensor), block_shape, padding, round_f32_to_tf32
        )

    def check_launch(self) -> None:
        """Refuse a block that no kernel can use. Raises: ShapeMismatch, NotPowerOfTwo."""
        self._check_rank("block_shape", self.block_shape)
        self._check_block(_element_bytes(self.base))

    def _check_rank(self, name: str, values: Sequence[int]) -> None:
        rank = len(self.shape)
        if not 1 <= rank <= MAX_RANK:
            raise ShapeMismatch(
                f"TensorDescriptor: a tensor of {rank} dimensions; 1 to {MAX_RANK} are possible",
                argument="shape",
            )
        if len(values) != rank:
            raise ShapeMismatch(
                f"TensorDescriptor: `{name}` has {len(values)} value(s) for {rank} dimensions",
                argument=name,
            )

    def _check_shape(self) -> None:
        if min(self.shape) < 1:
            raise ShapeMismatch(
                f"TensorDescriptor: the shape {list(self.shape)} is empty", argument="shape"
            )
        if max(self.shape) > _MAX_EXTENT:
            raise ShapeMismatch(
                f"TensorDescriptor: in the shape {list(self.shape)} an extent does not fit int32, "
                "as offsets have to",
                argument="shape",
                hint="describe the tensor in more dimensions, or in parts",
            )

    def _check_strides(self, size_bytes: int) -> None:
        *leading, last = self.strides
        if last != 1:
            raise ShapeMismatch(
                f"TensorDescriptor: the last stride is {last}, not 1",
                argument="strides",
                hint="describe the transposed tensor and transpose the block in the kernel",
            )
        for stride in leading:
            if stride < 0 or stride * size_bytes % _ALIGNMENT_BYTES:
                raise ShapeMismatch(
                    f"TensorDescriptor: stride {stride} is {stride * size_bytes} bytes, no "
                    f"multiple of {_ALIGNMENT_BYTES}",
                    argument="strides",
                    hint="pad the rows of the tensor",
                )

    def _check_block(self, size_bytes: int) -> None:
        for extent in self.block_shape:
            if not is_extent_of_groups(extent):
                raise NotPowerOfTwo(
                    f"TensorDescriptor: {extent} in `block_shape` is not a power of two",
                    argument="block_shape",
                    hint=_SET_BLOCK,
                )
        row_bytes = self.block_shape[-1] * size_bytes
        if row_bytes < _ALIGNMENT_BYTES:
            raise ShapeMismatch(
                f"TensorDescriptor: the block's last dimension has {row_bytes} bytes; at least "
                f"{_ALIGNMENT_BYTES} are needed",
                argument="block_shape",
                hint=_SET_BLOCK,
            )


def _integers(name: str, values: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Extents or strides. *Raises*: ShapeMismatch for what is no integer: nothing is cut off."""
    try:
        return tuple(map(index, values))
    except TypeError:
        raise ShapeMismatch(
            f"TensorDescriptor: `{name}` is {values!r}; it must be a sequence of integers",
            argument=name,
        ) from None


def _element_bytes(base: object) -> int:
    """Bytes of one element, by `element_size()` (torch) or `itemsize`."""
    element_size = getattr(base, "element_size", None)
    if callable(element_size):
        return index(cast("SupportsIndex", element_size()))
    for holder in (base, getattr(base, "dtype", None)):
        size = getattr(holder, "itemsize", None)
        if isinstance(size, int):
            return size
    raise ArgumentNotSupported(f"TensorDescriptor: {type(base).__name__} is no array")


def _strides_of(tensor: object) -> tuple[int, ...]:
    """Strides in elements, by `stride()` (torch) or `strides` in bytes (NumPy)."""
    stride = getattr(tensor, "stride", None)
    if callable(stride):
        found = stride()
        assert isinstance(found, tuple | list)
        return tuple(found)
    strides = getattr(tensor, "strides", None)
    if strides is None:
        raise ArgumentNotSupported(f"{type(tensor).__name__} has no strides")
    size_bytes = _element_bytes(tensor)
    return tuple(int(s) // size_bytes for s in strides)
