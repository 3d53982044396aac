"""The tensor maps of a kernel's launches, made once for each tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import cast

from tilewright.runtime.launch_numbers import Grid, LaunchConditions, launch_guards, words_of
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.cuda import Cuda
from tilewright.targets.nvidia.errors import LaunchRefused
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe, TensorShape, encode

# Chosen, not measured: a kernel on more tensors than this makes maps again, which is right.
_MAX_KNOWN = 256
_ENCODER = "cuTensorMapEncodeTiled"


@dataclass(frozen=True)
class TensorMaps:
    """The tensor maps that one kernel takes behind its slots, and those made so far."""

    cuda: Cuda
    kernel: str
    recipes: tuple[TensorMapRecipe, ...]
    slot_names: tuple[str, ...]
    conditions: LaunchConditions
    known: dict[tuple[int, TensorShape], bytes] = field(default_factory=dict)

    def values(self, arguments: Sequence[object], grid: Grid) -> list[bytes]:
        """The maps of a launch. Raises: ArgumentNotSupported, LaunchRefused."""
        if not self.recipes and not self.conditions.guards:
            return []
        slots = words_of(arguments)
        if not self.conditions.hold(slots, grid):
            broken = self.conditions.first_broken(slots, grid)
            demanded = broken.text if broken and broken.text else "tensors and indices are smaller"
            raise LaunchRefused(
                f"{self.kernel}(): this kernel is compiled for launches where {demanded}",
                hint="compile with bulk_access='never', or launch the function of the kernel",
            )
        return self.of_slots(slots)

    def of_slots(self, slots: Sequence[int]) -> list[bytes]:
        """The maps of a launch by its slots, of which only the low bits of each type count.

        Raises: ArgumentNotSupported, LaunchRefused.
        """
        return [self._value(index, slots) for index in range(len(self.recipes))]

    def key_slots(self) -> tuple[int, ...]:
        """The slots that the maps and the guards depend on; those from -1 down are the grid."""
        slots = [slot for recipe in self.recipes for slot in recipe.slots()]
        grid = (-1, -2, -3) if self.conditions.is_of_grid else ()
        return tuple(dict.fromkeys((*slots, *self.conditions.slots, *grid)))

    def _value(self, index: int, slots: Sequence[int]) -> bytes:
        recipe = self.recipes[index]
        tensor = recipe.describe(slots)
        found = self.known.get((index, tensor))
        if found is None:
            recipe.check(tensor, self.slot_names, self.kernel)
            if len(self.known) >= _MAX_KNOWN:
                self.known.clear()
            found = self.known[index, tensor] = self._encoded(recipe, tensor)
        return found

    def _encoded(self, recipe: TensorMapRecipe, tensor: TensorShape) -> bytes:
        code, value = encode(self.cuda.entry_point(_ENCODER), recipe, tensor)
        if code:
            raise LaunchRefused(
                f"{self.kernel}(): the driver does not describe a tensor of shape "
                f"{list(tensor.shape)}, strides {list(tensor.strides_bytes)} bytes and boxes of "
                f"{list(recipe.box)}: {self.cuda.describe(code)[0]}",
                hint="compile with descriptors='pointers'",
            )
        return value


def tensor_maps(
    cuda: Cuda, metadata: Mapping[str, object], slot_names: tuple[str, ...]
) -> TensorMaps:
    """The tensor maps that an artifact says its kernel takes."""
    entries = cast("list[Mapping[str, object]]", metadata.get("tensor_maps", []))
    recipes = tuple(TensorMapRecipe.from_metadata(entry) for entry in entries)
    conditions = LaunchConditions(launch_guards(metadata))
    return TensorMaps(cuda, str(metadata["name"]), recipes, slot_names, conditions)
