"""The tensor maps of a launch as the simulator takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.interp.simt.tensor_map import TensorMap
from tilewright.ir.op import Array
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe

_INTEGERS = {"u8": "u1", "u16": "u2", "u32": "u4", "i32": "i4", "u64": "u8", "i64": "i8"}


def recipes_of(metadata: Mapping[str, object]) -> list[TensorMapRecipe]:
    """How the launch of a compiled kernel makes its tensor maps."""
    entries = metadata["tensor_maps"]
    assert isinstance(entries, list)
    return [TensorMapRecipe.from_metadata(entry) for entry in entries]


def tensor_maps(
    metadata: Mapping[str, object], values: Sequence[object], arrays: Mapping[int, Array]
) -> list[TensorMap]:
    """The maps of a launch with these slots; `arrays` are by the address of their memory."""
    slots = [int(value) if isinstance(value, int) else 0 for value in values]
    return [_tensor_map(recipe, slots, arrays) for recipe in recipes_of(metadata)]


def _tensor_map(
    recipe: TensorMapRecipe, slots: Sequence[int], arrays: Mapping[int, Array]
) -> TensorMap:
    tensor = recipe.describe(slots)
    recipe.check(tensor, [f"argument {i}" for i in range(len(slots))], "kernel")
    below = max(address for address in arrays if address <= tensor.address)
    array = arrays[below].reshape(-1)
    skipped = (tensor.address - below) // array.itemsize
    if recipe.number in _INTEGERS:
        array = array.view(_INTEGERS[recipe.number])
    elif array.itemsize == 1:  # 8-bit floats are not NumPy's own
        array = array.view(np.uint8)
    view = np.lib.stride_tricks.as_strided(
        array[skipped:], tensor.shape, (*tensor.strides_bytes, array.itemsize)
    )
    return TensorMap(view, recipe.box, recipe.swizzle_bytes, recipe.fills_nan)
