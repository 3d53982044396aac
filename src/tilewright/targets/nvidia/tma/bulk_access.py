"""Makes copies of the engine of plain loads that are boxes of tensors (T0 to T0).

    %x = load %a + rows * stride + columns, mask = columns < K - k
    ⇒ %d = ttng.tensor_map {recipe: base a, shape [M, K], strides [stride]}
      %x = descriptor_load %d[row, k]           right where the launch keeps to the kernel's guards

What the analysis of affine accesses cannot prove it demands of the launch: that strides are
multiples of 16 bytes, that nothing starts at a negative index, that rows do not overlap. Those
guards go into the artifact; a launch that does not keep to them takes the same kernel without this
pass. It runs where the author asks for pipelining or for roles, on what feeds their
products.

Requires T0 with carried pointers split and duplicates merged, so that the rows of a load and of
the mask of a store are seen to be the same; produces T0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.box import BoxDim, TensorBox, as_box
from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.analysis.argument_effects import touched_arguments
from tilewright.analysis.facts import AxisFacts
from tilewright.ir.effects import Access, Resource, is_free, own_effects
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import loops_around
from tilewright.ir.schedule_attributes import hint_of
from tilewright.ir.types import (
    DescriptorType,
    element_of,
    is_integer,
    shape_of,
    tile_of,
    width_bits,
)
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.debug.ir import AssumeOp
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.elementwise.ir import ExtSIOp, TruncIOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import CACHE_MODIFIERS, LoadOp
from tilewright.ops.shape.ir import ReshapeOp, TransOp
from tilewright.passes.merge_duplicates import MergeDuplicates
from tilewright.passes.tile_builder import TileBuilder
from tilewright.runtime.launch_numbers import LaunchGuard, LaunchNumber
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma.box_annotations import annotate_box
from tilewright.targets.nvidia.tma.boxes import BoxPlan, plan_boxes
from tilewright.targets.nvidia.tma.launch_conditions import (
    add_guards,
    launch_guard,
    number_of,
)
from tilewright.targets.nvidia.tma.select_tensor_maps import add_remarks, element_number
from tilewright.targets.nvidia.tma_ops import TensorMapOp

_ROLES_HINT, _STAGES_HINT = "tt.warp_specialize", "tt.num_stages"
_MAX_INDEX = 1 << 30
"""By definition: no index is larger, so that the end of a box is a number of 32 bits, too."""
# Measured on an H200, 2026-11-22: copies of maps with larger extents are illegal instructions,
# though the driver makes them (CUDA driver API 13.0, cuTensorMapEncodeTiled, takes up to 2^32).
_EVERYTHING = 1 << 31
# Source: CUDA driver API 13.0, cuTensorMapEncodeTiled: a stride is less than 2^40 bytes.
_MAX_STRIDE_BYTES = (1 << 40) - 16


@dataclass(frozen=True)
class BulkAccess(Pass):
    """The pass; see the module. `is_eager` rewrites every load that is a box."""

    machine: MachineModel = SM_90A
    num_stages: int = 0
    groups: int = 0
    is_eager: bool = False
    name = "bulk-access"
    after = (
        "select-tensor-maps",
        "lower-block-pointers",
        "lower-descriptors",
        "split-carried-pointers",
        "split-products",
    )

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        kernel = find_kernel(module)
        loads = [op for op in kernel.walk() if isinstance(op, LoadOp) and self.is_wanted(op)]
        if loads and _Rewrite(kernel, self.machine).run(loads):
            # Loads that start at one place compute it once.
            MergeDuplicates().apply(module)

    def is_wanted(self, load: LoadOp) -> bool:
        """Whether the author asks for what a load of the engine is good for."""
        if sum(extent > 1 for extent in shape_of(load.result.type)) < 2:
            return False
        loops = list(loops_around(load))
        if any(map(hint_of, loops)):
            return False  # its author says who copies
        if self.is_eager:
            return True
        if self.groups or any(_ROLES_HINT in op.attributes for op in _kernel_of(load).walk()):
            return _feeds_product(load.result) or any(map(_has_product, loops))
        return bool(loops) and self._stages(loops[0]) > 1 and _feeds_product(load.result)

    def _stages(self, loop: Operation) -> int:
        hint = loop.attributes.get(_STAGES_HINT)
        return hint.value.data if isinstance(hint, IntegerAttr) else self.num_stages


def _kernel_of(op: Operation) -> Operation:
    while not isinstance(op, FuncOp):
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _feeds_product(value: SSAValue) -> bool:
    """Whether products take a tile as it is, or transposed, and nothing else does."""
    users = [use.operation for use in value.uses]
    return bool(users) and all(
        isinstance(user, DotOp) or (isinstance(user, TransOp) and _feeds_product(user.result))
        for user in users
    )


def _has_product(loop: Operation) -> bool:
    return any(isinstance(op, DotOp) for op in loop.walk())


class _Stays(Exception):
    """Why a load stays plain."""


class _Rewrite:
    """Rewrites the loads of one kernel."""

    def __init__(self, kernel: FuncOp, machine: MachineModel) -> None:
        self._kernel, self._machine = kernel, machine
        self._accesses, self._facts = Accesses(), AxisFacts(kernel)
        self._touched = touched_arguments(kernel)
        self._maps = {
            (op.recipe.data, op.result.type): op.result
            for op in kernel.body.block.ops
            if isinstance(op, TensorMapOp)
        }

    def run(self, loads: Sequence[LoadOp]) -> bool:
        """Rewrite those that may be; whether there were any.

        Every answer is found before the program changes.
        """
        stop = _first_stop(self._kernel)
        found: list[tuple[LoadOp, _Copy]] = []
        remarks: list[str] = []
        for load in loads:
            try:
                copy = self._copy(load, stop)
            except _Stays as stays:
                remarks.append(f"{describe(load)}: the load stays plain: {stays}")
                continue
            found.append((load, copy))
            tests = ", ".join(dict.fromkeys(guard.text for guard in copy.guards if guard.text))
            condition = f" where {tests}" if tests else ""
            remarks.append(f"{describe(load)}: the copy engine makes the load{condition}")
        for load, copy in found:
            self._replace(load, copy)
        add_guards(self._kernel, [guard for _, copy in found for guard in copy.guards])
        add_remarks(self._kernel, remarks)
        if found:
            _erase_dead(self._kernel)
        return bool(found)

    def _copy(self, load: LoadOp, stop: str) -> _Copy:
        if stop:
            raise _Stays(stop)
        self._check_memory(load)
        box = as_box(load, self._accesses, self._facts, self._machine)
        if isinstance(box, str):
            raise _Stays(box)
        element = element_of(load.result.type)
        number = element_number(element)
        if number is None:
            raise _Stays(f"the copy engine has no {element}")
        plan = plan_boxes(tuple(dim.extent for dim in box.dims), box.element_bytes)
        if isinstance(plan, str):
            raise _Stays(plan)
        _check_scalars(box)
        guards = tuple(dict.fromkeys(_guards_of(box)))
        return _Copy(box, plan, _recipe(box, plan, number), guards)

    def _check_memory(self, load: LoadOp) -> None:
        """Nothing in the kernel writes what is loaded, so that it does not matter when it is."""
        modifier = 0 if load.cache is None else load.cache.value.data
        if CACHE_MODIFIERS[modifier] == ".cv":
            raise _Stays("it is to find what others have just written")
        for op, arguments in self._touched.items():
            writes = any(isinstance(e, Access) and e.writes for e in own_effects(op))
            if writes and arguments & self._touched[load]:
                raise _Stays(f"{op.name} at {describe(op)} may write what it reads")

    def _replace(self, load: LoadOp, copy: _Copy) -> None:
        make = TileBuilder(load)
        desc = self._map(copy, element_of(load.result.type))
        indices = [_index(make, dim) for dim in copy.box.dims]
        value = self._loaded(make, load, copy, (desc, *indices))
        value.name_hint = load.result.name_hint
        load.result.replace_all_uses_with(value)
        load.detach()
        load.erase()

    def _loaded(
        self, make: TileBuilder, load: LoadOp, copy: _Copy, operands: Sequence[SSAValue]
    ) -> SSAValue:
        """The block, without dimensions of one element that are its own, turned as the tile is."""
        element, shape = element_of(load.result.type), shape_of(load.result.type)
        order = copy.box.order
        own = copy.plan.shape[len(copy.plan.shape) - len(order) :]
        type_, said = tile_of(element, own), load.attributes
        value = make.emit(DescriptorLoadOp, operands, type_, attributes=said)
        assert isinstance(value.owner, Operation)
        annotate_box(value.owner, copy.plan)
        places = tuple(sorted(range(len(order)), key=lambda place: order[place]))
        if places != tuple(range(len(order))):
            turned = tuple(own[place] for place in places)
            to = DenseArrayBase.from_list(i32, places)
            value = make.emit(TransOp, (value,), tile_of(element, turned), {"order": to})
        if shape_of(value.type) != shape:
            value = make.emit(ReshapeOp, (value,), tile_of(element, shape))
        return value

    def _map(self, copy: _Copy, element: Attribute) -> SSAValue:
        """The tensor map of a copy, at the start of the kernel; one for copies of one tensor."""
        type_ = DescriptorType(tile_of(element, copy.plan.shape))
        text = json.dumps(copy.recipe.to_metadata(), sort_keys=True)
        if (text, type_) not in self._maps:
            entry = self._kernel.body.block
            properties: dict[str, Attribute] = {
                "recipe": StringAttr(text),
                "index": IntegerAttr(len(self._maps), i32),
            }
            arguments = [entry.args[slot] for slot in copy.recipe.slots()]
            location = self._kernel.location
            made = build(TensorMapOp, arguments, [type_], properties, location=location)
            annotate_box(made, copy.plan)
            assert entry.first_op is not None
            entry.insert_op_before(made, entry.first_op)
            self._maps[text, type_] = made.results[0]
        return self._maps[text, type_]


@dataclass(frozen=True)
class _Copy:
    """How the engine makes a load, and what the launch has to keep to."""

    box: TensorBox
    plan: BoxPlan
    recipe: TensorMapRecipe
    guards: tuple[LaunchGuard, ...]


def _first_stop(kernel: FuncOp) -> str:
    """What in a kernel may order its loads with other programs, or may end one; '' without it."""
    for op in kernel.body.block.walk():
        if isinstance(op, AssumeOp):
            continue
        for effect in own_effects(op):
            if not _is_plain(op, effect):
                return f"{op.name} at {describe(op)} orders accesses"
    return ""


def _is_plain(op: Operation, effect: object) -> bool:
    """Whether an effect lets loads of memory that the kernel does not write be done at any time."""
    if not isinstance(effect, Access) or effect.resource is not Resource.GLOBAL:
        return False
    if getattr(op, "is_volatile", None) is not None and op.properties["isVolatile"] != _NOT:
        return False
    is_used = any(result.first_use is not None for result in op.results)
    return effect.atomic is None or not is_used


_NOT = IntegerAttr.from_bool(False)


def _check_scalars(box: TensorBox) -> None:
    """Starts are sums of signed integers that the program has."""
    for dim in box.dims:
        scalars = dim.start.symbols() + (() if dim.modulus is None else dim.modulus.symbols())
        for scalar in scalars:
            if not is_integer(scalar.type) or width_bits(scalar.type) < 8:
                raise _Stays(f"where it starts follows from a {scalar.type}")


def _guards_of(box: TensorBox) -> Iterator[LaunchGuard]:
    """What a launch has to keep to. *Raises*: _Stays where it cannot be tested."""
    demands = [(guard, str(guard)) for guard in box.guards]
    demands += [(guard, "") for guard in _limits(box)]
    for guard, text in demands:
        known = guard.number.as_int()
        if known is not None:
            if not _holds(known, guard):
                raise _Stays(f"{guard} does not hold")
            continue
        found = launch_guard(guard, text)
        if found is None:
            raise _Stays(f"that {guard} is not known at a launch")
        yield found


def _holds(number: int, guard: Guard) -> bool:
    if guard.demand is Demand.MULTIPLE:
        return number % guard.bound == 0
    return number <= guard.bound if guard.demand is Demand.AT_MOST else number >= guard.bound


def _limits(box: TensorBox) -> Iterator[Guard]:
    """Indices, extents and strides that the engine takes, of a tensor that begins in its array."""
    yield Guard(box.offset, Demand.AT_LEAST, 0)
    for place, dim in enumerate(_open_ended(box)):
        yield Guard(dim.start, Demand.AT_MOST, _MAX_INDEX)
        yield Guard(dim.start, Demand.AT_LEAST, -_MAX_INDEX if dim.may_precede else 0)
        for size in dim.sizes:
            yield Guard(size, Demand.AT_MOST, _MAX_INDEX)
        if dim.stride.as_int() != 1:
            yield Guard(dim.stride, Demand.AT_MOST, _MAX_STRIDE_BYTES // box.element_bytes)
        if dim.stride.as_int() == 1 and place and dim.sizes:
            # Rows that overlap are no rows of a tensor.
            overlap = dim.sizes[0].minus(box.dims[place - 1].stride)
            yield Guard(overlap, Demand.AT_MOST, 0)


def _recipe(box: TensorBox, plan: BoxPlan, number: str) -> TensorMapRecipe:
    base = _known(Expression(((1, (box.base,)),)))
    offset = _known(box.offset.scaled(box.element_bytes))
    shape = tuple(_size(dim) for dim in _open_ended(box))
    strides = tuple(_known(dim.stride) for dim in box.dims[:-1])
    if offset != ("constant", 0):
        base = ("add", 64, base, offset)
    return TensorMapRecipe(number, base, shape, strides, plan.box, plan.swizzle_bytes)


def _open_ended(box: TensorBox) -> tuple[BoxDim, ...]:
    """The dimensions of a box, without the end of a row that no mask says.

    A tile that crosses it goes on in the next row, as pointers do: to the engine, rows may be
    longer than they are apart.
    """
    within = {(part.start, part.extent, part.limit) for part in box.within}
    return tuple(
        replace(dim, sizes=()) if (dim.start, dim.extent, *dim.sizes[:1]) in within else dim
        for dim in box.dims
    )


def _size(dim: BoxDim) -> LaunchNumber:
    """How long the tensor is: the least of its ends, or as long as the program reads."""
    if not dim.sizes:
        return ("constant", _EVERYTHING)
    first, *others = map(_known, dim.sizes)
    for other in others:
        first = ("min", 64, first, other)
    return first


def _known(expression: Expression) -> LaunchNumber:
    number = number_of(expression)
    if number is None:
        raise _Stays("its tensor follows from what a launch does not compute")
    return number


def _index(make: TileBuilder, dim: BoxDim) -> SSAValue:
    """Where a box starts along a dimension, in 32 bits: the launch has tested that it fits."""
    start = _emitted(make, dim.start)
    if dim.modulus is None:
        return start
    return make.binary("remsi", start, _emitted(make, dim.modulus))


def _emitted(make: TileBuilder, expression: Expression) -> SSAValue:
    """A sum of products modulo 32 bits."""
    total: SSAValue | None = None
    for coefficient, factors in expression.terms:
        term: SSAValue | None = None if coefficient == 1 and factors else make.integer(coefficient)
        for factor in factors:
            scalar = _narrow(make, factor)
            term = scalar if term is None else make.binary("muli", term, scalar)
        assert term is not None
        total = term if total is None else make.binary("addi", total, term)
    return make.integer(0) if total is None else total


def _narrow(make: TileBuilder, scalar: SSAValue) -> SSAValue:
    if width_bits(scalar.type) > 32:
        return make.emit(TruncIOp, (scalar,), i32)
    if width_bits(scalar.type) < 32:
        return make.emit(ExtSIOp, (scalar,), i32)
    return scalar


def _erase_dead(kernel: FuncOp) -> None:
    """Erase what only the rewritten loads needed."""
    for op in reversed(list(kernel.walk())):
        is_used = any(result.first_use is not None for result in op.results)
        if op.results and not op.regions and not is_used and is_free(op):
            op.detach()
            op.erase()
