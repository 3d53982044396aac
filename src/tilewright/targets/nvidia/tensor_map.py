"""Tensor maps: the 128 bytes by which the copy engine knows a tensor, made at a launch.

Part of the launch path: it imports neither xDSL nor the compiler. An artifact says in its
metadata, map by map, how the address, the shape and the strides follow from the arguments.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from tilewright.runtime.launch_numbers import LaunchNumber, evaluate, slots_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import ArgumentNotSupported
from tilewright.targets.nvidia.launch_maps_ir import MAP_BYTES

# Source: CUDA driver API 13.0, cuTensorMapEncodeTiled, which says what it takes.
_MAP_ALIGNMENT_BYTES = 64
_ALIGNMENT_BYTES = 16
_STRIDE_LIMIT_BYTES = 1 << 40
_EXTENT_LIMIT = 1 << 32

# Source: cuda.h. The driver's numbers: CUtensorMapDataType, CUtensorMapSwizzle, and how many
# bytes a miss of the second cache fetches (CUtensorMapL2promotion, 128 bytes).
NUMBERS = {
    "u8": (0, 1),
    "u16": (1, 2),
    "u32": (2, 4),
    "i32": (3, 4),
    "u64": (4, 8),
    "i64": (5, 8),
    "f16": (6, 2),
    "f32": (7, 4),
    "f64": (8, 8),
    "bf16": (9, 2),
}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
# Source: cuda.h, CUtensorMapL2promotion.
_PROMOTE_128_BYTES = 2


@dataclass(frozen=True)
class TensorMapRecipe:
    """How one tensor map follows from the arguments of a launch.

    `shape` and `strides` are in the order of the kernel, in elements, the last stride (1) left
    out; `box` is what one copy moves. `fills_nan`: what is out of bounds reads as NaN.
    """

    number: str
    base: LaunchNumber
    shape: tuple[LaunchNumber, ...]
    strides: tuple[LaunchNumber, ...]
    box: tuple[int, ...]
    swizzle_bytes: int
    fills_nan: bool = False

    @staticmethod
    def from_metadata(entry: Mapping[str, object]) -> TensorMapRecipe:
        """The recipe that `to_metadata` wrote."""
        fields = cast("Mapping[str, list[LaunchNumber]]", entry)
        return TensorMapRecipe(
            str(entry["number"]),
            cast("LaunchNumber", entry["base"]),
            tuple(fields["shape"]),
            tuple(fields["strides"]),
            tuple(cast("list[int]", entry["box"])),
            cast("int", entry["swizzle_bytes"]),
            bool(entry["fills_nan"]),
        )

    def to_metadata(self) -> dict[str, object]:
        """This recipe as JSON takes it."""
        return {
            "number": self.number,
            "base": self.base,
            "shape": self.shape,
            "strides": self.strides,
            "box": self.box,
            "swizzle_bytes": self.swizzle_bytes,
            "fills_nan": self.fills_nan,
        }

    @property
    def element_bytes(self) -> int:
        """The bytes of an element."""
        return NUMBERS[self.number][1]

    def slots(self) -> tuple[int, ...]:
        """The arguments that the map depends on, those of its address first."""
        expressions = (self.base, *self.shape, *self.strides)
        return tuple(dict.fromkeys(slot for e in expressions for slot in slots_of(e)))

    def describe(self, slots: Sequence[int] | Mapping[int, int]) -> TensorShape:
        """Where the tensor of a launch is, and how it lies."""
        return TensorShape(
            evaluate(self.base, slots),
            tuple(evaluate(extent, slots) for extent in self.shape),
            tuple(evaluate(stride, slots) * self.element_bytes for stride in self.strides),
        )

    def check(self, tensor: TensorShape, names: Sequence[str], kernel: str) -> None:
        """Check what the copy engine demands; `names` are those of the arguments.

        Raises: ArgumentNotSupported, with the argument and the remedy.
        """
        slots = slots_of(self.base)
        argument = names[slots[0]] if slots else "base"
        wrong, hint = _fault_of(tensor)
        if wrong:
            raise ArgumentNotSupported(
                f"{kernel}(): the tensor descriptor of `{argument}` {wrong}",
                argument=argument,
                hint=hint,
            )


@dataclass(frozen=True)
class TensorShape:
    """A tensor in memory: its address, its shape, and its strides but the last in bytes."""

    address: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]


def _fault_of(tensor: TensorShape) -> tuple[str, str]:
    """What the copy engine does not take of a tensor, and what to do."""
    any_alignment = "compile with descriptors='pointers', which takes any"
    if tensor.address % _ALIGNMENT_BYTES:
        wrong = f"starts at {tensor.address:#x}, no multiple of {_ALIGNMENT_BYTES} bytes"
        return wrong, f"describe it from an aligned element on, or {any_alignment}"
    for dim, stride in enumerate(tensor.strides_bytes):
        if stride % _ALIGNMENT_BYTES or not 0 <= stride < _STRIDE_LIMIT_BYTES:
            wrong = f"has stride {dim} of {stride} bytes, no multiple of {_ALIGNMENT_BYTES}"
            if stride % _ALIGNMENT_BYTES == 0:
                wrong = f"has stride {dim} of {stride} bytes; 0 to 2^40 are possible"
            return wrong, f"pad the rows of the tensor, or {any_alignment}"
    for dim, extent in enumerate(tensor.shape):
        if not 1 <= extent <= _EXTENT_LIMIT:
            wrong = f"has extent {extent} along dimension {dim}; 1 to 2^32 are possible"
            return wrong, f"launch nothing for a tensor without elements, or {any_alignment}"
    return "", ""


@functools.cache
def _encoder(address: int) -> Callable[..., int]:
    """`cuTensorMapEncodeTiled` at its address."""
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    arguments = (pointer, number, ctypes.c_uint32, *[pointer] * 5, *[number] * 4)
    return ctypes.CFUNCTYPE(number, *arguments)(address)


def encode(encoder: int, recipe: TensorMapRecipe, tensor: TensorShape) -> tuple[int, bytes]:
    """The driver's result code and the 128 bytes of a map; dims go in from the last on."""
    rank = len(tensor.shape)
    buffer = ctypes.create_string_buffer(MAP_BYTES + _MAP_ALIGNMENT_BYTES)
    at = -(-ctypes.addressof(buffer) // _MAP_ALIGNMENT_BYTES) * _MAP_ALIGNMENT_BYTES
    code = _encoder(encoder)(
        at,
        NUMBERS[recipe.number][0],
        rank,
        tensor.address,
        (ctypes.c_uint64 * rank)(*reversed(tensor.shape)),
        (ctypes.c_uint64 * max(1, rank - 1))(*reversed(tensor.strides_bytes)),
        (ctypes.c_uint32 * rank)(*reversed(recipe.box)),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        0,  # no interleaving
        _SWIZZLES[recipe.swizzle_bytes],
        _PROMOTE_128_BYTES,
        int(recipe.fills_nan),
    )
    return code, ctypes.string_at(at, MAP_BYTES)
