"""Makes copies of the engine of plain loads and stores that are boxes of tensors (T0 to T0).

    %x = load %a + rows * stride + columns, mask = columns < K - k
    ⇒ %d = ttng.tensor_map {recipe: base a, shape [M, K], strides [stride]}
      %x = descriptor_load %d[row, k]           right where the launch keeps to the kernel's guards

What the analysis of affine accesses cannot prove it demands of the launch: that strides are
multiples of 16 bytes, that nothing starts at a negative index, that rows do not overlap. Those
guards go into the artifact; a launch that does not keep to them takes the same kernel without this
pass. It runs where the author asks for pipelining or for roles, on what feeds their
products; in roles also on what is stored behind them.

Requires T0 with carried pointers split and duplicates merged, so that the rows of a load and of
the mask of a store are seen to be the same; produces T0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.effects import is_free
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import loops_around
from tilewright.ir.schedule_attributes import hint_of
from tilewright.ir.types import element_of, shape_of, storage_bytes, tile_of
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.descriptors.ir import DescriptorLoadOp, DescriptorStoreOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.ops.shape.ir import PermutingOp, ReshapeOp, TransOp
from tilewright.passes.merge_duplicates import MergeDuplicates
from tilewright.passes.tile_builder import TileBuilder
from tilewright.schedule.plan.products import plan_product
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.partition.copied_loads import are_copied_whole
from tilewright.targets.nvidia.partition.default_roles import large_product
from tilewright.targets.nvidia.tma.box_annotations import annotate_box
from tilewright.targets.nvidia.tma.bulk_copy import Copies, Copy, Stays, index_of
from tilewright.targets.nvidia.tma.launch_conditions import add_guards
from tilewright.targets.nvidia.tma.select_tensor_maps import add_remarks

_SINGLE_BYTES = 4  # By definition: of a float32.
_ROLES_HINT, _STAGES_HINT = "tt.warp_specialize", "tt.num_stages"
_Plain = TypeVar("_Plain", LoadOp, StoreOp)


@dataclass(frozen=True)
class BulkAccess(Pass):
    """The pass; see the module. `is_eager` rewrites every load that is a box.

    With `is_open` products that would get roles by default are rewritten where all of it may be,
    but for one operand whose rows are gathered. With `loads_alone` stores stay as they are, and
    without `stores_heads` those of rows of a head or a batch: a schedule of the author's may leave
    no room for what is stored whole.
    """

    machine: MachineModel = SM_90A
    num_stages: int = 0
    groups: int = 0
    is_eager: bool = False
    is_open: bool = False
    loads_alone: bool = False
    num_warps: int = 4
    stores_heads: bool = True
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
        rewrite = _Rewrite(kernel, self.machine, self.stores_heads)
        is_asked = self._asks_for_roles(kernel)
        if not is_asked and self.is_open and large_product(kernel, self.machine) is not None:
            loads, stores = self._accesses(kernel, in_roles=True)
            plain = [load for load in loads if not rewrite.may_all([load], [])]
            is_left = not plain or (len(plain) == 1 and are_copied_whole(kernel, plain))
            boxes = [load for load in loads if load not in plain]
            has_boxes = bool(boxes) or _has(kernel, DescriptorLoadOp)
            is_stored = bool(stores) or self.loads_alone or _has(kernel, DescriptorStoreOp)
            if is_stored and is_left and has_boxes:
                is_asked = rewrite.may_all(boxes, stores)
        loads, stores = self._accesses(kernel, is_asked)
        if rewrite.run(loads, stores):
            # Loads that start at one place compute it once.
            MergeDuplicates().apply(module)

    def _accesses(self, kernel: FuncOp, in_roles: bool) -> tuple[list[LoadOp], list[StoreOp]]:
        """The loads and the stores that are worth a copy of the engine."""
        ops = list(kernel.walk())
        loads = [op for op in ops if isinstance(op, LoadOp) and self._is_wanted(op, in_roles)]
        is_product = in_roles and not self.loads_alone and _has_product(kernel)
        stores = [op for op in ops if is_product and isinstance(op, StoreOp) and _is_stored(op)]
        return loads, stores

    def _is_wanted(self, load: LoadOp, in_roles: bool) -> bool:
        """Whether the author asks for what a load of the engine is good for."""
        if sum(extent > 1 for extent in shape_of(load.result.type)) < 2:
            return False
        loops = list(loops_around(load))
        if any(map(hint_of, loops)):
            return False  # its author says who copies
        if self.is_eager:
            return True
        if in_roles:
            return _feeds_product(load.result) or any(map(_has_product, loops))
        if not loops or self._stages(loops[0]) < 2 or not _feeds_product(load.result):
            return False
        return not self._is_of_warps(load.result)

    def _is_of_warps(self, value: SSAValue) -> bool:
        """Whether instructions of single warps take a tile: threads copy what is so small.

        Measured on an H200, 2026-11-27, fp16, us with 3 slots, by the engine and by threads: 4096³
        in 32 x 32 x 32 2793 and 911, in 32 x 64 x 64 538 and 615, B transposed 868 and 600; 16 rows
        in 16 x 64 x 128 13.3 and 12.3, B transposed 18.6 and 11.8. On 2026-11-28, int8, 2048³ in
        32 x 64 x 64: 163 by the engine, 100 in the order of the text; float32 goes by the engine:
        1024³ in 32 x 32 x 32 33 and 45.
        """
        users = [use.operation for use in value.uses]
        return storage_bytes(value.type) < _SINGLE_BYTES and all(
            isinstance(user, ProductOp)
            and plan_product(user, self.machine, self.num_warps).instruction == "mma"
            for user in users
        )

    def _asks_for_roles(self, kernel: FuncOp) -> bool:
        return bool(self.groups) or any(_ROLES_HINT in op.attributes for op in kernel.walk())

    def _stages(self, loop: Operation) -> int:
        hint = loop.attributes.get(_STAGES_HINT)
        return hint.value.data if isinstance(hint, IntegerAttr) else self.num_stages


def _is_stored(store: StoreOp) -> bool:
    """Whether roles store a tile behind their products: it then goes out in chunks."""
    loops = list(loops_around(store))
    if any(map(hint_of, loops)) or any(map(_multiplies, loops)):
        return False
    return sum(extent > 1 for extent in shape_of(store.value.type)) > 1


def _feeds_product(value: SSAValue) -> bool:
    """Whether products take a tile as it is, or transposed, and nothing else does."""
    users = [use.operation for use in value.uses]
    return bool(users) and all(
        isinstance(user, ProductOp)
        or (isinstance(user, PermutingOp) and _feeds_product(user.result))
        for user in users
    )


def _has_product(op: Operation) -> bool:
    return any(isinstance(inner, ProductOp) for inner in op.walk())


def _has(kernel: FuncOp, kind: type[Operation]) -> bool:
    return any(isinstance(op, kind) for op in kernel.walk())


def _multiplies(loop: Operation) -> bool:
    """Whether a product stands directly in a loop."""
    return any(isinstance(op, ProductOp) for region in loop.regions for op in region.block.ops)


class _Rewrite:
    """Rewrites the accesses of one kernel."""

    def __init__(self, kernel: FuncOp, machine: MachineModel, stores_heads: bool) -> None:
        self._kernel, self._copies = kernel, Copies(kernel, machine)
        self._stores_heads = stores_heads
        self._remarks: list[str] = []

    def run(self, loads: Sequence[LoadOp], stores: Sequence[StoreOp]) -> bool:
        """Rewrite those that may be; whether there were any.

        Stores go where loads go: those of a kernel whose loads all stay plain do, too.
        """
        copied = self._found("load", loads, self._copies.of_load)
        goes = bool(copied) or _has(self._kernel, DescriptorLoadOp)
        of_store = partial(self._of_store, num_stores=len(stores))
        written = self._found("store", stores, of_store) if goes else {}
        for load, copy in copied.items():
            self._replace_load(load, copy)
        for store, copy in written.items():
            self._replace_store(store, copy)
        copies = (*copied.values(), *written.values())
        add_guards(self._kernel, [guard for copy in copied.values() for guard in copy.guards])
        behind = [guard for copy in written.values() for guard in copy.guards]
        add_guards(self._kernel, [replace(guard, of_stores=True) for guard in behind])
        add_remarks(self._kernel, self._remarks)
        if copies:
            _erase_dead(self._kernel)
        return bool(copies)

    def _of_store(self, store: StoreOp, num_stores: int) -> Copy:
        """How the engine makes a store, one of so many. *Raises*: Stays.

        Rows of a head go alone: others, and rings of the author's, may leave no room for them.
        """
        copy = self._copies.of_store(store)
        if copy.has_single_dims() and not (self._stores_heads and num_stores == 1):
            raise Stays("others take the room in shared memory")
        return copy

    def may_all(self, loads: Sequence[LoadOp], stores: Sequence[StoreOp]) -> bool:
        """Whether the engine may make each of these accesses."""
        try:
            for load in loads:
                self._copies.of_load(load)
            for store in stores:
                self._copies.of_store(store)
        except Stays:
            return False
        return True

    def _found(
        self, what: str, ops: Sequence[_Plain], copy_of: Callable[[_Plain], Copy]
    ) -> dict[_Plain, Copy]:
        """The accesses that the engine makes; a remark for each says so, or why it does not."""
        found: dict[_Plain, Copy] = {}
        for op in ops:
            try:
                copy = copy_of(op)
            except Stays as stays:
                self._remarks.append(f"{describe(op)}: the {what} stays plain: {stays}")
                continue
            found[op] = copy
            tests = ", ".join(dict.fromkeys(guard.text for guard in copy.guards if guard.text))
            condition = f" where {tests}" if tests else ""
            self._remarks.append(f"{describe(op)}: the copy engine makes the {what}{condition}")
        return found

    def _replace_load(self, load: LoadOp, copy: Copy) -> None:
        make = TileBuilder(load)
        desc = self._copies.map_for(copy, element_of(load.result.type))
        indices = [index_of(make, dim) for dim in copy.box.dims]
        value = self._loaded(make, load, copy, (desc, *indices))
        value.name_hint = load.result.name_hint
        load.result.replace_all_uses_with(value)
        erase(load)

    def _loaded(
        self, make: TileBuilder, load: LoadOp, copy: Copy, operands: Sequence[SSAValue]
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

    def _replace_store(self, store: StoreOp, copy: Copy) -> None:
        make = TileBuilder(store)
        desc = self._copies.map_for(copy, element_of(store.value.type))
        indices = [index_of(make, dim) for dim in copy.box.dims]
        made = build(DescriptorStoreOp, (desc, store.value, *indices), location=store.location)
        made.attributes.update(store.attributes)
        annotate_box(made, copy.plan)
        assert store.parent is not None
        store.parent.insert_op_before(made, store)
        erase(store)


def _erase_dead(kernel: FuncOp) -> None:
    """Erase what only the rewritten loads needed."""
    for op in reversed(list(kernel.walk())):
        is_used = any(result.first_use is not None for result in op.results)
        if op.results and not op.regions and not is_used and is_free(op):
            erase(op)
