"""Moves blocks of one batch or head as tiles without these dims (T0 to T0).

    %x = descriptor_load %d[%b, %i, %h, 0] : 1x128x1x64; %y = reshape %x : 128x64
    ⇒ %y = descriptor_load %e[%b, %h, %i, 0] : 128x64     %e: the tensor of %d, single dims first
    descriptor_store %d[%b, %i, %h, 0], (reshape %z : 128x64 to 1x128x1x64)
    ⇒ descriptor_store %e[%b, %h, %i, 0], %z

Authors give a tensor all its dims, and take the two that they compute on. A product reads a tile
from the slot where the copy engine puts it; a reshaped one would be read and written again by
threads first. Where the dims of one element are not the first ones, the map's dims change places:
the bytes of a block and their order stay.

Requires T0 with tensor maps of the launch selected; produces T0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.types import DescriptorType, element_of, shape_of, storage_bytes, tile_of
from tilewright.ops.descriptors.ir import (
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
)
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.shape.ir import ReshapeOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.partition.smaller_maps import drop_unused_maps, maps_of
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma.box_annotations import annotate_box, box_plan
from tilewright.targets.nvidia.tma.boxes import BoxPlan
from tilewright.targets.nvidia.tma_ops import TensorMapOp


@dataclass(frozen=True)
class NarrowBlocks(Pass):
    """The pass; see the module."""

    name = "narrow-blocks"
    after = ("select-tensor-maps",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        kernel = find_kernel(module)
        if not maps_of(kernel):
            return
        narrowing = _Narrowing(kernel)
        for op in tuple(kernel.walk()):
            if isinstance(op, DescriptorLoadOp):
                narrowing.load(op)
            elif isinstance(op, DescriptorStoreOp | DescriptorReduceOp):
                narrowing.store(op)
        drop_unused_maps(kernel)


def reshaped(op: Operation) -> SSAValue | None:
    """What a reshape makes; None for other ops."""
    return op.result if isinstance(op, ReshapeOp) else None


def kept_dims(block: Sequence[int], tile: Sequence[int]) -> tuple[int, ...] | None:
    """The dims of a block that a tile of two dims or more has, if it lacks only single ones.

    None where it lacks others, the last one or none.
    """
    if not 2 <= len(tile) < len(block):
        return None
    kept = tuple(dim for dim, extent in enumerate(block) if extent > 1)
    single = [dim for dim, extent in enumerate(block) if extent == 1]
    missing = len(tile) - len(kept)
    # A tile of one row keeps the last single dims of the block.
    kept = tuple(sorted((*kept, *(single[-missing:] if missing > 0 else ()))))
    is_same = tuple(block[dim] for dim in kept) == tuple(tile)
    return kept if is_same and kept[-1] == len(block) - 1 else None


class _Narrowing:
    """The accesses of one kernel, and the maps that were made for them."""

    def __init__(self, kernel: FuncOp) -> None:
        self._kernel = kernel
        self._made: dict[tuple[SSAValue, tuple[int, ...]], TensorMapOp] = {}

    def load(self, op: DescriptorLoadOp) -> None:
        """Load a tile that is reshaped, and nothing else, as what it becomes."""
        users = [use.operation for use in op.result.uses]
        made_of = [reshaped(user) for user in users]
        shapes = {None if value is None else shape_of(value.type) for value in made_of}
        if len(shapes) != 1 or (shape := shapes.pop()) is None:
            return
        found = self._map(op.desc, shape_of(op.result.type), shape)
        if found is None:
            return
        made, order = found
        indices = [op.indices[dim] for dim in order]
        type_ = tile_of(element_of(op.result.type), shape)
        value = TileBuilder(op).emit(
            DescriptorLoadOp, (made.result, *indices), type_, op.properties, op.attributes
        )
        assert isinstance(value.owner, Operation)
        annotate_box(value.owner, box_plan(made, made.result))
        for user in users:
            user.results[0].replace_all_uses_with(value)
            erase(user)
        erase(op)

    def store(self, op: DescriptorStoreOp | DescriptorReduceOp) -> None:
        """Store, or add to memory, what a tile was before it was reshaped to the block."""
        reshape = op.src.owner
        if not isinstance(reshape, ReshapeOp):
            return
        found = self._map(op.desc, shape_of(op.src.type), shape_of(reshape.src.type))
        if found is None:
            return
        made, order = found
        op.operands = [made.result, reshape.src, *(op.indices[dim] for dim in order)]
        annotate_box(op, box_plan(made, made.result))
        if reshape.result.first_use is None:
            erase(reshape)

    def _map(
        self, desc: SSAValue, shape: tuple[int, ...], tile: tuple[int, ...]
    ) -> tuple[TensorMapOp, tuple[int, ...]] | None:
        """The map of a tensor with the dims first that a tile has not, and their order.

        None where the block is another one, or no map of the launch.
        """
        kept = kept_dims(shape, tile)
        assert isinstance(desc.type, DescriptorType)
        whole = desc.owner
        if kept is None or not isinstance(whole, TensorMapOp):
            return None
        if shape_of(desc.type.block) != shape:
            return None
        order = (*(dim for dim in range(len(shape)) if dim not in kept), *kept)
        if order == tuple(range(len(shape))):
            return whole, order
        key = desc, order
        if key not in self._made:
            self._made[key] = self._turned(whole, desc.type.block, order)
        return self._made[key], order

    def _turned(self, whole: TensorMapOp, block: Attribute, order: tuple[int, ...]) -> TensorMapOp:
        recipe = TensorMapRecipe.from_metadata(json.loads(whole.recipe.data))
        plan, shape = box_plan(whole, whole.result), shape_of(block)
        turned = tuple(shape[dim] for dim in order)
        box = tuple(plan.box[dim] for dim in order)
        strides = tuple(recipe.strides[dim] for dim in order[:-1])
        moved = replace(
            recipe, shape=tuple(recipe.shape[dim] for dim in order), strides=strides, box=box
        )
        entry = self._kernel.body.block
        arguments = [entry.args[slot] for slot in moved.slots()]
        properties: dict[str, Attribute] = {
            "recipe": StringAttr(json.dumps(moved.to_metadata(), sort_keys=True)),
            "index": IntegerAttr(len(maps_of(self._kernel)), i32),
        }
        type_ = DescriptorType(tile_of(element_of(block), turned))
        made = build(TensorMapOp, arguments, [type_], properties, (), whole.location)
        assert isinstance(made, TensorMapOp)
        annotate_box(made, BoxPlan(turned, storage_bytes(block), plan.swizzle_bytes, box))
        entry.insert_op_after(made, whole)
        return made
