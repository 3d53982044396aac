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
from tilewright.targets.nvidia.tma_ops import MakeTensorMapOp, TakeMapSlotOp, TensorMapOp


def maps_of(kernel: FuncOp) -> list[TensorMapOp]:
    """The maps that the launch makes for a kernel, in the order of the text."""
    return [op for op in kernel.body.block.ops if isinstance(op, TensorMapOp)]


def made_maps_of(kernel: FuncOp) -> list[MakeTensorMapOp]:
    """The maps that the program of a kernel makes itself, in the order of the text."""
    return [op for op in kernel.walk() if isinstance(op, MakeTensorMapOp)]


AnyMap = TensorMapOp | MakeTensorMapOp


class SmallerMaps:
    """Makes maps for a kernel, one for each tensor and block; `undo` takes them back."""

    def __init__(self, kernel: FuncOp) -> None:
        self._kernel = kernel
        self._made: dict[tuple[SSAValue, Attribute], AnyMap] = {}

    def shrink(
        self, desc: SSAValue, tile: Attribute
    ) -> tuple[SSAValue, Mapping[str, Attribute]] | None:
        """The map of blocks like `tile` of the tensor behind `desc`, and what its accesses carry.

        Where the tensor has more dims than the tile, a block has one element of the first ones.
        None where no map is behind `desc`, or the engine does not move such blocks.
        """
        whole = desc.owner
        if not isinstance(whole, AnyMap):
            return None
        block = tile_of(element_of(tile), _with_single_dims(desc, shape_of(tile)))
        made = self._made.get((desc, block)) or self._make(whole, block)
        if made is None:
            return None
        self._made[desc, block] = made
        return made.result, {BoxAttr.name: made.attributes[BoxAttr.name]}

    def with_boxes(self, desc: SSAValue, plan: BoxPlan) -> SSAValue:
        """The map of the same blocks of a tensor, moved in other boxes."""
        whole = next(m for m in maps_of(self._kernel) if m.result is desc)
        return self._with_plan(whole, desc.type, plan).result

    def _make(self, whole: AnyMap, block: Attribute) -> AnyMap | None:
        plan = plan_boxes(shape_of(block), storage_bytes(block))
        if isinstance(plan, str):
            return None
        if isinstance(whole, MakeTensorMapOp):
            return self._made_by_program(whole, DescriptorType(block), plan)
        return self._with_plan(whole, DescriptorType(block), plan)

    def _made_by_program(
        self, whole: MakeTensorMapOp, type_: Attribute, plan: BoxPlan
    ) -> MakeTensorMapOp:
        """The map of smaller blocks, made where the other one is: it has a place of its own."""
        properties = dict(whole.properties)  # with a number of its own in the end
        made = build(MakeTensorMapOp, whole.operands, [type_], properties, (), whole.location)
        assert isinstance(made, MakeTensorMapOp) and whole.parent is not None
        annotate_box(made, plan)
        whole.parent.insert_op_after(made, whole)
        return made

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
        """Take back the maps of the launch, which nobody uses.

        Those that a program makes stand in the body of a role, and go with it.
        """
        for made in self._made.values():
            if isinstance(made, TensorMapOp):
                erase(made)
        self._made.clear()


def _with_single_dims(desc: SSAValue, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with as many dims as the blocks of a descriptor: the first have one element."""
    assert isinstance(desc.type, DescriptorType)
    return (1,) * (len(shape_of(desc.type.block)) - len(shape)) + shape


def drop_unused_maps(kernel: FuncOp) -> None:
    """Erase maps that nobody uses, and number the others anew."""
    for op in (*maps_of(kernel), *made_maps_of(kernel)):
        if op.result.first_use is None:
            erase(op)
    _number_made(kernel)
    ordered = sorted(maps_of(kernel), key=lambda op: op.index.value.data)
    for index, op in enumerate(ordered):
        op.properties["index"] = IntegerAttr(index, i32)


def _number_made(kernel: FuncOp) -> None:
    """Give each map that a program makes a place of its own in the slots that it takes."""
    made = made_maps_of(kernel)
    for index, op in enumerate(made):
        op.properties["index"] = IntegerAttr(index, i32)
    for op in tuple(kernel.walk()):
        if isinstance(op, TakeMapSlotOp):
            op.properties["num_maps"] = IntegerAttr(len(made), i32)
