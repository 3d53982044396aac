"""Chooses the copy engine for accesses through tensor descriptors, plain pointers for others.

    %d = make_tensor_descriptor %base, [%m, %k], [%k, 1]
    %x = descriptor_load %d[%i, %j]
    ⇒ %d = ttng.tensor_map {recipe = …}      at the start of the kernel, made by the launch
      %x = descriptor_load %d[%i, %j]

An access stays one through a descriptor where the launch can make the descriptor, and the engine
moves its block; else it is made of pointers, and a remark says why.

Requires T0; produces T0 whose descriptors all come from tensor maps.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir import types as ir
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ops.atomics import RMW_KINDS
from tilewright.ops.function import FuncOp
from tilewright.ops.memory import (
    PADDINGS,
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
)
from tilewright.passes.expand_structures import Expansion, Rule, Structure
from tilewright.passes.lower_descriptors import POINTER_RULES, expand_descriptors
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tensor_map import Expression, TensorMapRecipe, slots_of
from tilewright.targets.nvidia.tma.boxes import plan_boxes
from tilewright.targets.nvidia.tma.recipes import expression_of
from tilewright.targets.nvidia.tma_ops import TensorMapOp

REMARKS_ATTRIBUTE = "remarks"
"""Left on the kernel: why accesses are made of pointers."""
_WHOLE_BLOCKS = (DescriptorLoadOp, DescriptorStoreOp, DescriptorReduceOp)
_ROWS = (DescriptorGatherOp, DescriptorScatterOp)
_FLOAT_NUMBERS: dict[Attribute, str] = {
    ir.f16: "f16",
    ir.bf16: "bf16",
    ir.f32: "f32",
    ir.f64: "f64",
}
_SIGNED_KINDS = ("max", "min")


@dataclass(frozen=True)
class SelectTensorMaps:
    """The pass; see the module."""

    name: str = "select-tensor-maps"

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function that makes a descriptor."""
        for op in tuple(module.body.block.ops):
            if isinstance(op, FuncOp):
                _Selection(op).run()


def take_remarks(kernel: FuncOp) -> tuple[str, ...]:
    """What the pass left to say on a kernel, which goes with it."""
    texts = kernel.attributes.pop(REMARKS_ATTRIBUTE, None)
    return tuple(text.data for text in texts) if isinstance(texts, ArrayAttr) else ()


class _Selection:
    """The tensor maps of one kernel, and why it has no more of them."""

    def __init__(self, kernel: FuncOp) -> None:
        self._kernel = kernel
        self._maps: dict[tuple[str, Attribute], SSAValue] = {}
        self._remarks: list[str] = []

    def run(self) -> None:
        """Rewrite the kernel."""
        rules: dict[type[Operation], Rule] = dict(POINTER_RULES)
        rules.update(dict.fromkeys((*_WHOLE_BLOCKS, *_ROWS), self._rule))
        expand_descriptors(self._kernel, rules)
        if self._remarks:
            texts = [StringAttr(text) for text in dict.fromkeys(self._remarks)]
            self._kernel.attributes[REMARKS_ATTRIBUTE] = ArrayAttr(texts)

    def _rule(self, expansion: Expansion, op: Operation) -> bool:
        structure = expansion.found[op.operands[0]]
        found = self._map(structure, op)
        if isinstance(found, str):
            what = op.name.rpartition("_")[2]
            self._remarks.append(
                f"{describe(op)}: the {what} through a descriptor is made of pointers: {found}"
            )
            return POINTER_RULES[type(op)](expansion, op)
        op.operands = [found, *op.operands[1:]]
        return False

    def _map(self, structure: Structure, op: Operation) -> SSAValue | str:
        """The tensor map for an access, or why there is none."""
        if isinstance(op, _ROWS):
            return "the copy engine has no rows by their numbers"
        recipe = _recipe(structure, op)
        if isinstance(recipe, str):
            return recipe
        text = json.dumps(recipe.to_metadata(), sort_keys=True)
        key = (text, structure.block)
        if key not in self._maps:
            self._maps[key] = self._make(text, recipe.slots(), structure.block)
        return self._maps[key]

    def _make(self, recipe: str, slots: Sequence[int], block: Attribute) -> SSAValue:
        properties: dict[str, Attribute] = {
            "recipe": StringAttr(recipe),
            "index": IntegerAttr(len(self._maps), i32),
        }
        entry = self._kernel.body.block
        first = entry.first_op
        assert first is not None
        type_ = ir.DescriptorType(block)
        arguments = [entry.args[slot] for slot in slots]
        made = build(TensorMapOp, arguments, [type_], properties, location=self._kernel.location)
        entry.insert_op_before(made, first)
        return made.results[0]


def _recipe(structure: Structure, op: Operation) -> TensorMapRecipe | str:
    """How the launch makes the tensor map of an access, or why it cannot."""
    element, shape = ir.element_of(structure.block), ir.shape_of(structure.block)
    accessed = op.results[0] if isinstance(op, DescriptorLoadOp) else op.operands[1]
    if ir.shape_of(accessed.type) != shape:
        return f"the tile has another shape than the block {list(shape)}"
    fills_nan = PADDINGS[structure.padding] == "nan" and isinstance(op, DescriptorLoadOp)
    number = _number(element, op)
    if number is None or (fills_nan and element not in _FLOAT_NUMBERS):
        return f"the copy engine has no {element}" + (" to fill with NaN" if fills_nan else "")
    plan = plan_boxes(shape, ir.storage_bytes(element))
    if isinstance(plan, str):
        return plan
    base = expression_of(structure.base)
    extents = _expressions(structure.shape)
    strides = _expressions(structure.strides)
    if base is None or not slots_of(base) or extents is None or strides is None:
        return "its address, shape and strides do not follow from the kernel's arguments"
    if strides[-1] != ("constant", 1):
        return "the last stride is not the constant 1"
    return TensorMapRecipe(
        number, base, extents, strides[:-1], plan.box, plan.swizzle_bytes, fills_nan
    )


def _expressions(values: Sequence[SSAValue]) -> tuple[Expression, ...] | None:
    found = [expression_of(value) for value in values]
    return tuple(e for e in found if e is not None) if None not in found else None


def _number(element: Attribute, op: Operation) -> str | None:
    """What the engine takes the elements for; None where it has no such numbers."""
    if element in _FLOAT_NUMBERS:
        return _FLOAT_NUMBERS[element]
    bits = ir.width_bits(element)
    if ir.is_pointer(element) or bits < 8:
        return None
    is_reduced = isinstance(op, DescriptorReduceOp)
    if is_reduced and RMW_KINDS[op.kind.value.data] in _SIGNED_KINDS:
        return f"i{bits}" if bits >= 32 else None
    return None if is_reduced and bits < 32 else f"u{bits}"
