"""Chooses the copy engine for accesses through tensor descriptors, plain pointers for others.

    %d = make_tensor_descriptor %base, [%m, %k], [%k, 1]
    %x = descriptor_load %d[%i, %j]
    ⇒ %d = ttng.tensor_map {recipe = …}      at the start of the kernel, made by the launch
      %x = descriptor_load %d[%i, %j]

An access stays one through a descriptor where the engine moves its block; else it is made of
pointers, and a remark says why. The launch makes a descriptor that follows from the kernel's
arguments; the program makes any other one (`ttng.make_tensor_map`), in a slot of global memory
that it takes at its start and gives back at its end.

Requires T0; produces T0 whose descriptors all come from tensor maps.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.analysis.facts import AxisFacts
from tilewright.ir import types as ir
from tilewright.ir.annotations import annotated
from tilewright.ir.attributes import integer_array
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.machine.gpus import SM_90A
from tilewright.ops.atomics.ir import RMW_KINDS
from tilewright.ops.descriptors.ir import (
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
)
from tilewright.ops.function import FuncOp, functions_of
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.memory.ir import PADDINGS
from tilewright.ops.shape.ir import PermutingOp
from tilewright.passes.expand_structures import Expansion, Rule, Structure
from tilewright.passes.lower_descriptors import POINTER_RULES, expand_descriptors
from tilewright.runtime.launch_numbers import LaunchGuard, LaunchNumber, slots_of
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma.box_annotations import (
    BoxAttr,
    annotate_box,
    given_boxes,
    refused_box,
)
from tilewright.targets.nvidia.tma.boxes import BoxPlan, plan_boxes
from tilewright.targets.nvidia.tma.launch_conditions import add_guards, index_guard
from tilewright.targets.nvidia.tma.narrow_blocks import reshaped
from tilewright.targets.nvidia.tma.recipes import expression_of
from tilewright.targets.nvidia.tma_ops import (
    LeaveMapSlotOp,
    MakeTensorMapOp,
    TakeMapSlotOp,
    TensorMapOp,
)

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
# Other places end a launch with an illegal instruction, as do stores at negative indices; loads
# take those. Measured on an H200, 2026-11-21, driver 580.
_START_BYTES = 16
_MAY_BE_NEGATIVE = "an index may be negative"
_CHOSEN = "which descriptor it is depends on control flow"
_MAX_LOADED_BYTES = 144 << 10
"""What the loaded blocks of a kernel take of shared memory before others are left out.

Chosen, not measured: of the 227 KiB of a program of an H100 the rest is for conversions and stores;
blocks that feed a product go through shared memory anyway and are not asked."""
_SIGNED_KINDS = ("max", "min")


@dataclass(frozen=True)
class SelectTensorMaps(Pass):
    """The pass; see the module. `may_guard` lets a launch prove what the kernel does not."""

    # What runs at once on Hopper with the default of 4 warps.
    num_slots: int = SM_90A.num_sms * SM_90A.max_warps_per_sm // 4
    may_guard: bool = True
    name = "select-tensor-maps"
    after = ("merge-counters",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function that makes a descriptor."""
        for function in functions_of(module):
            _Selection(function, self.num_slots, self.may_guard).run()


def remarks_of(kernel: FuncOp) -> tuple[str, ...]:
    """What the pass left to say on a kernel."""
    texts = kernel.attributes.get(REMARKS_ATTRIBUTE)
    return tuple(text.data for text in texts) if isinstance(texts, ArrayAttr) else ()


def add_remarks(kernel: FuncOp, remarks: Sequence[str]) -> None:
    """Say more on a kernel."""
    texts = dict.fromkeys((*remarks_of(kernel), *remarks))
    if texts:
        kernel.attributes[REMARKS_ATTRIBUTE] = ArrayAttr([StringAttr(text) for text in texts])


def element_number(element: Attribute) -> str | None:
    """What the engine takes elements for that it only moves; None where it has no such ones."""
    if element in _FLOAT_NUMBERS:
        return _FLOAT_NUMBERS[element]
    bits = ir.width_bits(element)
    return None if ir.is_pointer(element) or bits < 8 else f"u{bits}"


class _Selection:
    """The tensor maps of one kernel, and why it has no more of them."""

    def __init__(self, kernel: FuncOp, num_slots: int, may_guard: bool) -> None:
        self._kernel = kernel
        self._num_slots = num_slots
        self._may_guard = may_guard
        self._guards: list[LaunchGuard] = []
        self._facts = AxisFacts(kernel)
        self._maps: dict[tuple[str, Attribute], SSAValue] = {}
        self._made: dict[tuple[SSAValue, _Form], SSAValue] = {}
        self._remarks: list[str] = []
        self._loaded_bytes = 0

    def run(self) -> None:
        """Rewrite the kernel."""
        rules: dict[type[Operation], Rule] = dict(POINTER_RULES)
        rules.update(dict.fromkeys((*_WHOLE_BLOCKS, *_ROWS), self._rule))
        expand_descriptors(self._kernel, rules)
        if self._made:
            self._add_slot()
        add_guards(self._kernel, self._guards)
        add_remarks(self._kernel, self._remarks)

    def _rule(self, expansion: Expansion, op: Operation) -> bool:
        structure = expansion.found[op.operands[0]]
        found = self._map(structure, op)
        if isinstance(found, str):
            if annotated(op, BoxAttr) is not None:
                raise refused_box(op, found)
            what = op.name.rpartition("_")[2]
            self._remarks.append(
                f"{describe(op)}: the {what} through a descriptor is made of pointers: {found}"
            )
            return POINTER_RULES[type(op)](expansion, op)
        op.operands = [found, *op.operands[1:]]
        return False

    def _map(self, structure: Structure, op: Operation) -> SSAValue | str:
        """The tensor map for an access, or why there is none."""
        form = _form(structure, op)
        if isinstance(form, str):
            return form
        if not self._has_room(op):
            return "other blocks take the shared memory"
        recipe, made_by = _recipe(structure, form), op.operands[0].owner
        if recipe is None and not isinstance(made_by, MakeTensorDescriptorOp):
            return _CHOSEN
        guards = self._guards_of(op, recipe is not None)
        if isinstance(guards, str):
            return guards
        if guards:
            self._guards += guards
            self._remarks.append(f"{describe(op)}: the copy engine {guards[0].text}")
        annotate_box(op, form.boxes)
        if recipe is not None:
            return self._of_launch(recipe, structure.block, form)
        assert isinstance(made_by, MakeTensorDescriptorOp)
        return self._of_program(made_by, form)

    def _guards_of(self, op: Operation, is_of_launch: bool) -> list[LaunchGuard] | str:
        """What a launch has to keep to for an access, or why the engine does not make it.

        `is_of_launch`: the launch makes the map. Warm launches keep the answer beside its maps.
        """
        assert isinstance(op, DescriptorLoadOp | DescriptorStoreOp | DescriptorReduceOp)
        block = op.operands[0].type
        assert isinstance(block, ir.DescriptorType)
        last = self._facts.of(op.indices[-1])
        if last.divisor * ir.storage_bytes(block.block) % _START_BYTES:
            return f"the last index is not known to be a multiple of {_START_BYTES} bytes"
        if isinstance(op, DescriptorLoadOp):
            return []
        unknown = [index for index in op.indices if not self._facts.of(index).is_nonnegative]
        if unknown and not is_of_launch:
            # By definition a descriptor's extents are not negative, where it was made.
            facts = AxisFacts(self._kernel, _extents_of(op.operands[0]))
            unknown = [index for index in unknown if not facts.of(index).is_nonnegative]
        if unknown and not (self._may_guard and is_of_launch):
            return _MAY_BE_NEGATIVE
        what = op.name.rpartition("_")[2]
        text = f"makes the {what} where no index is negative"
        guards = [index_guard(index, text) for index in unknown]
        found = [guard for guard in guards if guard is not None]
        return found if len(found) == len(guards) else _MAY_BE_NEGATIVE

    def _has_room(self, op: Operation) -> bool:
        """Whether a loaded block goes to shared memory beside those before it.

        What a matrix product reads is there anyway.
        """
        if not isinstance(op, DescriptorLoadOp):
            return True
        type_ = op.result.type
        num_bytes = prod(ir.shape_of(type_)) * ir.storage_bytes(type_)
        if self._loaded_bytes + num_bytes > _MAX_LOADED_BYTES and not _feeds_product(op.result):
            return False
        self._loaded_bytes += num_bytes
        return True

    def _of_launch(self, recipe: TensorMapRecipe, block: Attribute, form: _Form) -> SSAValue:
        text = json.dumps(recipe.to_metadata(), sort_keys=True)
        key = (text, block)
        if key not in self._maps:
            entry = self._kernel.body.block
            properties: dict[str, Attribute] = {
                "recipe": StringAttr(text),
                "index": IntegerAttr(len(self._maps), i32),
            }
            arguments = [entry.args[slot] for slot in recipe.slots()]
            type_ = ir.DescriptorType(block)
            made = build(TensorMapOp, arguments, [type_], properties, (), self._kernel.location)
            annotate_box(made, form.boxes)
            assert entry.first_op is not None
            entry.insert_op_before(made, entry.first_op)
            self._maps[key] = made.results[0]
        return self._maps[key]

    def _of_program(self, op: MakeTensorDescriptorOp, form: _Form) -> SSAValue:
        key = (op.result, form)
        if key not in self._made:
            rank = len(op.shape)
            properties: dict[str, Attribute] = {
                "number": StringAttr(form.number),
                "index": IntegerAttr(len(self._made), i32),
                "operandSegmentSizes": integer_array((1, rank, rank, 0, 0)),
            }
            if form.fills_nan:
                properties["fills_nan"] = UnitAttr()
            operands = [op.base, *op.shape, *op.strides]
            type_ = op.result.type
            made = build(MakeTensorMapOp, operands, [type_], properties, location=op.location)
            annotate_box(made, form.boxes)
            assert op.parent is not None
            op.parent.insert_op_before(made, op)
            self._made[key] = made.results[0]
        return self._made[key]

    def _add_slot(self) -> None:
        """Take a slot for the program's maps at its start, and give it back at its end."""
        entry = self._kernel.body.block
        first, last = entry.first_op, entry.last_op
        assert first is not None and last is not None
        properties: dict[str, Attribute] = {
            "num_slots": IntegerAttr(self._num_slots, i32),
            "num_maps": IntegerAttr(len(self._made), i32),
        }
        location = self._kernel.location
        take = build(TakeMapSlotOp, (), [ir.pointer_to(ir.i8)], properties, location=location)
        entry.insert_op_before(take, first)
        leave = build(LeaveMapSlotOp, [take.results[0]], location=location)
        entry.insert_op_before(leave, last)
        for made in self._made.values():
            op = made.owner
            assert isinstance(op, MakeTensorMapOp)
            rank = len(op.shape)
            op.operands = [*op.operands, take.results[0]]
            op.properties["operandSegmentSizes"] = integer_array((1, rank, rank, 0, 1))


def _extents_of(desc: SSAValue) -> Sequence[SSAValue]:
    """The extents that a descriptor of the program's is made with."""
    made_by = desc.owner
    return made_by.shape if isinstance(made_by, MakeTensorDescriptorOp) else ()


def _feeds_product(value: SSAValue) -> bool:
    users = [use.operation for use in value.uses]
    return any(
        isinstance(u, ProductOp)
        or (isinstance(u, PermutingOp) and _feeds_product(u.result))
        or ((made := reshaped(u)) is not None and _feeds_product(made))
        for u in users
    )


@dataclass(frozen=True)
class _Form:
    """What a tensor map holds beside the tensor."""

    number: str
    boxes: BoxPlan
    fills_nan: bool


def _form(structure: Structure, op: Operation) -> _Form | str:
    """How the engine makes an access, or why it does not."""
    if isinstance(op, _ROWS):
        return "the copy engine has no rows by their numbers"
    element, shape = ir.element_of(structure.block), ir.shape_of(structure.block)
    accessed = op.results[0] if isinstance(op, DescriptorLoadOp) else op.operands[1]
    if ir.shape_of(accessed.type) != shape:
        return f"the tile has another shape than the block {list(shape)}"
    fills_nan = PADDINGS[structure.padding] == "nan" and isinstance(op, DescriptorLoadOp)
    number = _number(element, op)
    if number is None or (fills_nan and element not in _FLOAT_NUMBERS):
        return f"the copy engine has no {element}" + (" to fill with NaN" if fills_nan else "")
    last = expression_of(structure.strides[-1])
    if last != ("constant", 1):
        is_chosen = not isinstance(op.operands[0].owner, MakeTensorDescriptorOp)
        return _CHOSEN if is_chosen else "the last stride is not the constant 1"
    size = ir.storage_bytes(element)
    plan = given_boxes(op, shape, size) or plan_boxes(shape, size)
    return plan if isinstance(plan, str) else _Form(number, plan, fills_nan)


def _recipe(structure: Structure, form: _Form) -> TensorMapRecipe | None:
    """How the launch makes the tensor map of an access; None where it cannot."""
    base = expression_of(structure.base)
    extents = _expressions(structure.shape)
    strides = _expressions(structure.strides[:-1])
    if base is None or not slots_of(base) or extents is None or strides is None:
        return None
    return TensorMapRecipe(
        form.number,
        base,
        extents,
        strides,
        form.boxes.box,
        form.boxes.swizzle_bytes,
        form.fills_nan,
    )


def _expressions(values: Sequence[SSAValue]) -> tuple[LaunchNumber, ...] | None:
    found = [expression_of(value) for value in values]
    return tuple(e for e in found if e is not None) if None not in found else None


def _number(element: Attribute, op: Operation) -> str | None:
    """What the engine takes the elements for; None where it has no such numbers."""
    number = element_number(element)
    if number is None or element in _FLOAT_NUMBERS:
        return number
    bits = ir.width_bits(element)
    is_reduced = isinstance(op, DescriptorReduceOp)
    if is_reduced and RMW_KINDS[op.kind.value.data] in _SIGNED_KINDS:
        return f"i{bits}" if bits >= 32 else None
    return None if is_reduced and bits < 32 else number
