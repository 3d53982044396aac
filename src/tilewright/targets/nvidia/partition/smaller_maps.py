"""Tensor maps of smaller blocks of tensors that a kernel has maps of."""

from __future__ import annotations

import json
from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.op import build
from tilewright.ir.types import DescriptorType, element_of, shape_of, storage_bytes, tile_of
from tilewright.ops.function import FuncOp
from tilewright.support.dataclass import replace
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma.box_annotations import BoxAttr, annotate_box
from tilewright.targets.nvidia.tma.boxes import BoxPlan, plan_boxes
from tilewright.targets.nvidia.tma_ops import TensorMapOp


def maps_of(kernel: FuncOp) -> list[TensorMapOp]:
    """The maps that the launch makes for a kernel, in the order of the text."""
    return [op for op in kernel.body.block.ops if isinstance(op, TensorMapOp)]


class SmallerMaps:
    """Makes maps for a kernel, one for each tensor and block; `undo` takes them back."""

    def __init__(self, kernel: FuncOp) -> None:
        self._kernel = kernel
        self._made: dict[tuple[SSAValue, Attribute], TensorMapOp] = {}

    def shrink(
        self, desc: SSAValue, tile: Attribute
    ) -> tuple[SSAValue, Mapping[str, Attribute]] | None:
        """The map of blocks like `tile` of the tensor behind `desc`, and what its accesses carry.

        None where the launch does not make `desc`, or the engine does not move such blocks.
        """
        whole = next((m for m in maps_of(self._kernel) if m.result is desc), None)
        if whole is None:
            return None
        block = tile_of(element_of(tile), shape_of(tile))
        made = self._made.get((desc, block)) or self._make(whole, block)
        if made is None:
            return None
        self._made[desc, block] = made
        return made.result, {BoxAttr.name: made.attributes[BoxAttr.name]}

    def with_boxes(self, desc: SSAValue, plan: BoxPlan) -> SSAValue:
        """The map of the same blocks of a tensor, moved in other boxes."""
        whole = next(m for m in maps_of(self._kernel) if m.result is desc)
        return self._with_plan(whole, desc.type, plan).result

    def _make(self, whole: TensorMapOp, block: Attribute) -> TensorMapOp | None:
        plan = plan_boxes(shape_of(block), storage_bytes(block))
        return (
            None if isinstance(plan, str) else self._with_plan(whole, DescriptorType(block), plan)
        )

    def _with_plan(self, whole: TensorMapOp, type_: Attribute, plan: BoxPlan) -> TensorMapOp:
        recipe = TensorMapRecipe.from_metadata(json.loads(whole.recipe.data))
        smaller = replace(recipe, box=plan.box, swizzle_bytes=plan.swizzle_bytes)
        properties: dict[str, Attribute] = {
            "recipe": StringAttr(json.dumps(smaller.to_metadata(), sort_keys=True)),
            "index": IntegerAttr(len(maps_of(self._kernel)), i32),
        }
        made = build(TensorMapOp, whole.arguments, [type_], properties, (), whole.location)
        assert isinstance(made, TensorMapOp)
        annotate_box(made, plan)
        assert whole.parent is not None
        whole.parent.insert_op_after(made, whole)
        return made

    def undo(self) -> None:
        """Take back all maps, which nobody uses."""
        for made in self._made.values():
            erase(made)
        self._made.clear()


def drop_unused_maps(kernel: FuncOp) -> None:
    """Erase maps that nobody uses, and number the others anew."""
    for op in maps_of(kernel):
        if op.result.first_use is None:
            erase(op)
    ordered = sorted(maps_of(kernel), key=lambda op: op.index.value.data)
    for index, op in enumerate(ordered):
        op.properties["index"] = IntegerAttr(index, i32)
