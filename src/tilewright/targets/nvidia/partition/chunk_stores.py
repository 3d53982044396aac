"""Stores blocks in chunks through a few shared tiles, while a role goes on (T1 to T1).

    descriptor_store %d[%i, %j], %x : 64x256
    ⇒ %c = extract_slice %x, 0 : 64x64; tma_store_wait {pending = 1}; barrier
      local_store %c → %stage0; fence; barrier; tma_store %stage0 → %e[%i, %j]
      … the same for columns 64 through %stage1, 128 through %stage0, 192 through %stage1

Asked for by `epilogue tma columns 64 buffers 2` of a schedule with roles. Each replica has stages
of its own, so the last chunks of a tile go out while the role multiplies the next one; it waits for
them where it ends, or where stores begin that come behind all of these and may take their place.
Where each chunk has a stage to itself, all are
written at once, behind one wait and between two barriers. A block that is added to memory goes out
whole, through one stage of its own: the role waits for it where it writes the next one. A store
whose block is read or written elsewhere in the kernel is waited for where it stands, and so is one
whose chunks would change threads.

*Why here*: behind the layouts, which say what a thread has of a chunk, and in front of
`stage-tensor-maps`, which takes the stores that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.analysis.provenance import base_argument
from tilewright.ir.edits import erase, insert_before
from tilewright.ir.encoding import TOKEN, laid_out, layout_of
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.schedule import Epilogue
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.ir.types import element_of, shape_of
from tilewright.layout.parts import part_layout
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.descriptors.ir import DescriptorReduceOp, DescriptorStoreOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.roles import find_roles
from tilewright.ops.staging import ExtractSliceOp, LocalAllocOp, LocalBarrierOp, LocalStoreOp
from tilewright.schedule.global_barriers import global_accesses
from tilewright.schedule.partition.apart import are_apart
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import UnsupportedLayout
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.partition.room import chunk_shape, num_stages
from tilewright.targets.nvidia.partition.smaller_maps import AnyMap, SmallerMaps, drop_unused_maps
from tilewright.targets.nvidia.tma.box_annotations import annotate_box, box_plan
from tilewright.targets.nvidia.tma.stage import tile_type
from tilewright.targets.nvidia.tma.visibility import is_overwritten
from tilewright.targets.nvidia.tma_ops import MakeTensorMapOp, TmaStoreOp, TmaStoreWaitOp

Store = DescriptorStoreOp | DescriptorReduceOp


@dataclass(frozen=True)
class ChunkStores(Pass):
    """The pass; see the module."""

    name = "chunk-stores"
    requires = "T1"
    produces = "T1"
    after = ("assign-layouts", "stage-channels")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the stores of the kernel's roles."""
        chunk_stores(find_kernel(module))


def chunk_stores(kernel: FuncOp) -> None:
    """Rewrite the stores of a kernel's roles; its schedule says which were left, and why."""
    roles, schedule = find_roles(kernel), schedule_of(kernel)
    if roles is None or schedule is None or schedule.epilogue.kind != "tma":
        return
    stores = [op for op in kernel.walk() if isinstance(op, Store)]
    against = {store: _reason(kernel, store) for store in stores}
    reasons = list(schedule.reasons)
    chunking = _Chunking(kernel, schedule.epilogue)
    for body in roles.bodies:
        inside = set(body.block.walk())
        own = _Role(body.block, chunking)
        for store in (op for op in stores if op in inside):
            reason = against[store] or own.rewrite(store)
            if reason:
                reasons.append(f"the store at {describe(store)} is made whole: {reason}")
        own.end()
    annotate_schedule(kernel, replace(schedule, reasons=tuple(reasons)))
    drop_unused_maps(kernel)


def _reason(kernel: FuncOp, store: Store) -> str:
    """Why a store must not overtake what comes behind it; '' where it may."""
    base = base_argument(store.desc)
    is_made = isinstance(store.desc.owner, MakeTensorMapOp)  # roles meet where they have to
    for op in () if is_made else kernel.walk():
        touched = () if op is store or are_apart(op, store) else global_accesses(op)
        if base is None or any(access.base in (base, None) for access in touched):
            return f"{op.name} at {describe(op)} may touch what it writes"
    if isinstance(store, DescriptorReduceOp):
        return ""  # additions may come in any order
    return "the next one may go to the same block" if is_overwritten(store, ()) else ""


class _Chunking:
    """How a kernel's blocks are cut."""

    def __init__(self, kernel: FuncOp, epilogue: Epilogue) -> None:
        self.epilogue = epilogue
        self._maps = SmallerMaps(kernel)

    def chunk_type(self, store: Store) -> Attribute | str:
        """The register tile of a chunk of a store; why it has none."""
        if isinstance(store, DescriptorReduceOp):
            return store.src.type
        shape = chunk_shape(shape_of(store.src.type), self.epilogue)
        if shape is None:
            return f"{shape_of(store.src.type)} has no chunks of {self.epilogue.columns} columns"
        try:
            return laid_out(
                element_of(store.src.type), part_layout(layout_of(store.src.type), shape)
            )
        except UnsupportedLayout as error:
            return error.summary

    def map_for(self, store: Store, chunk: Attribute) -> AnyMap | None:
        """The tensor map of chunks; None where the engine does not move them."""
        smaller = self._maps.shrink(store.desc, chunk)
        owner = None if smaller is None else smaller[0].owner
        return owner if isinstance(owner, AnyMap) else None


class _Role:
    """The stores of a role, which share its stages."""

    def __init__(self, body: Block, chunking: _Chunking) -> None:
        self._body = body
        self._chunking = chunking
        self._stages: dict[tuple[Attribute, int], tuple[SSAValue, ...]] = {}

    def rewrite(self, store: Store) -> str:
        """Store in chunks; why not, with the store as it was."""
        chunk = self._chunking.chunk_type(store)
        if isinstance(chunk, str):
            return chunk
        smaller = self._chunking.map_for(store, chunk)
        if smaller is None:
            return f"the copy engine moves no chunks of {shape_of(chunk)}"
        _Rewrite(store, chunk, smaller, self._stages_for(smaller, store, chunk)).run()
        return ""

    def _stages_for(self, smaller: AnyMap, store: Store, chunk: Attribute) -> tuple[SSAValue, ...]:
        """The tiles through which chunks of a type go, in turn."""
        num = num_stages(len(_firsts(store, chunk)), self._chunking.epilogue)
        key = tile_type(smaller, smaller.result, len(shape_of(chunk))), num
        if key not in self._stages:
            first = self._body.find_ancestor_op_in_block(store)
            assert first is not None
            made = [build(LocalAllocOp, (), [key[0]], location=store.location)]
            made += [made[0].clone() for _ in range(num - 1)]
            for alloc in made:
                self._body.insert_op_before(alloc, first)
            self._stages[key] = tuple(alloc.results[0] for alloc in made)
        return self._stages[key]

    def end(self) -> None:
        """Give stages back where what stood in them has been read, to those of later stores."""
        numbers = {op: number for number, op in enumerate(self._body.ops)}
        firsts = [tiles[0].owner for tiles in self._stages.values()]
        kept: dict[Operation, list[SSAValue]] = {}
        for tiles in self._stages.values():
            users = [
                self._body.find_ancestor_op_in_block(u.operation) for t in tiles for u in t.uses
            ]
            last = max(numbers[user] for user in users if user is not None)
            later = (op for op in firsts if isinstance(op, Operation) and numbers[op] > last)
            end = min(later, key=numbers.__getitem__, default=self._body.last_op)
            assert end is not None
            kept.setdefault(end, []).extend(tiles)
        for end, stages in kept.items():
            self._body.insert_op_before(_wait(0, end, stages), end)


def _firsts(store: Store, chunk: Attribute) -> list[tuple[int, int]]:
    """The numbers of the chunks of a block along its rows and columns, in the order of stores."""
    (rows, columns), (height, width) = shape_of(store.src.type)[-2:], shape_of(chunk)[-2:]
    return [(i, j) for j, i in product(range(columns // width), range(rows // height))]


class _Rewrite:
    """The chunks of one store."""

    def __init__(
        self,
        store: Store,
        chunk: Attribute,
        smaller: AnyMap,
        stages: Sequence[SSAValue],
    ) -> None:
        self._store = store
        self._chunk = chunk
        self._map = smaller
        self._stages = stages

    def run(self) -> None:
        """Put the chunks in the place of the store: all at once where each has its own stage."""
        chunks = _firsts(self._store, self._chunk)
        num = len(self._stages)
        together = num if num == len(chunks) else 1
        strips = {j: self._strip(j) for _, j in chunks}
        for first in range(0, len(chunks), together):
            some = chunks[first : first + together]
            parts = [self._part(strips[j], -2, i, self._chunk) for i, j in some]
            stages = [self._stages[(first + k) % num] for k in range(together)]
            self._write(parts, stages)
            for stage, (i, j) in zip(stages, some, strict=True):
                self._start(stage, self._indices(i, j))
        erase(self._store)

    def _emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue] = (),
        types: Sequence[Attribute] = (),
        properties: dict[str, Attribute] | None = None,
    ) -> Operation:
        op = build(cls, operands, types, properties, location=self._store.location)
        return insert_before(self._store, op)

    def _strip(self, j: int) -> SSAValue:
        """The columns of a chunk, with all rows of the block."""
        src, width = self._store.src, shape_of(self._chunk)[-1]
        layout = part_layout(layout_of(src.type), (*shape_of(src.type)[:-1], width))
        return self._part(src, -1, j, laid_out(element_of(src.type), layout))

    def _part(self, src: SSAValue, dim: int, number: int, type_: Attribute) -> SSAValue:
        if src.type == type_:
            return src
        properties: dict[str, Attribute] = {
            "dim": IntegerAttr(len(shape_of(src.type)) + dim, i32),
            "part": IntegerAttr(number, i32),
        }
        return self._emit(ExtractSliceOp, [src], [type_], properties).results[0]

    def _indices(self, i: int, j: int) -> list[SSAValue]:
        *single, row, column = self._store.indices
        height, width = shape_of(self._chunk)[-2:]
        return [*single, self._moved(row, i * height), self._moved(column, j * width)]

    def _moved(self, index: SSAValue, by: int) -> SSAValue:
        if by == 0:
            return index
        step = self._emit(ConstantOp, (), [i32], {"value": IntegerAttr(by, i32)}).results[0]
        return self._emit(ELEMENTWISE["arith.addi"], [index, step], [i32]).results[0]

    def _write(self, parts: Sequence[SSAValue], stages: Sequence[SSAValue]) -> None:
        """Write chunks to their stages, once what was stored through them has been read."""
        insert_before(self._store, _wait(len(self._stages) - len(stages), self._store))
        self._emit(LocalBarrierOp)
        for part, stage in zip(parts, stages, strict=True):
            self._emit(LocalStoreOp, [part, stage])
        self._emit(FenceAsyncSharedOp)
        self._emit(LocalBarrierOp)

    def _start(self, stage: SSAValue, indices: list[SSAValue]) -> None:
        kind: dict[str, Attribute] = {}
        if isinstance(self._store, DescriptorReduceOp):
            kind["kind"] = self._store.kind
        started = self._emit(TmaStoreOp, [self._map.result, stage, *indices], [TOKEN], kind)
        annotate_box(started, box_plan(self._map, self._map.result))


def _wait(pending: int, like: Operation, kept: Sequence[SSAValue] = ()) -> Operation:
    properties: dict[str, Attribute] = {"pending": IntegerAttr(pending, i32)}
    return build(TmaStoreWaitOp, kept, (), properties, location=like.location)
