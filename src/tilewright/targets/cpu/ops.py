"""The ops of C2: loops over vectors, arena memory and microkernels.

At C2 a program is scalar and vector code. Types: scalars, `!tt.ptr<T>`, `vector<W x T>`
(a chunk of a tile along one dimension; `T` may be a pointer) and arena buffers, which are
pointers. Structured control flow is scf; arithmetic is the same elementwise ops as at T0, on
scalars and vectors. Addresses are pointers plus element offsets (`tt.addptr`).
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, UnitAttr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from tilewright.ir.attributes import integers_of
from tilewright.ir.effects import Access, Allocation, Effect, Resource, read, update, write
from tilewright.ir.op import Array, TileOp
from tilewright.ir.types import PointerType, shape_of, storage_bytes
from tilewright.targets.cpu.launch_ops import LAUNCH_OPS


@irdl_op_definition
class NestOp(TileOp):
    """One fused loop nest: `bounds` per dimension, `vector` lanes per step.

    The region holds the loops (scf.for) and their vector code; results are the scalars that
    the nest computes (`cpu.yield`). `summary` names the tile ops fused here, for `explain`.
    """

    name = "cpu.nest"
    bounds = prop_def(DenseArrayBase)
    vector = prop_def(IntegerAttr)
    summary = opt_prop_def(StringAttr)
    body = region_def("single_block")
    outputs = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())


@irdl_op_definition
class YieldOp(TileOp):
    """The end of a nest or of a lane-combine region."""

    name = "cpu.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class AllocOp(TileOp):
    """A 64-byte aligned buffer of `num_elems` elements in the worker's arena.

    `offset_bytes` is set by the arena pass; before that the buffer has no place. Contents are
    undefined until written; buffers whose live ranges do not overlap may share bytes. What is
    `kept` shares none: the next program of the same thread finds it as it was, until a launch
    begins (`cpu.forget`).
    """

    name = "cpu.alloc"
    num_elems = prop_def(IntegerAttr)
    offset_bytes = opt_prop_def(IntegerAttr)
    label = opt_prop_def(StringAttr)
    kept = opt_prop_def(UnitAttr)
    result = result_def()

    def effects(self) -> tuple[Effect, ...]:
        return (Allocation(Resource.GLOBAL, self.result),)


def allocated_bytes(op: AllocOp) -> int:
    """The bytes of a buffer."""
    pointer = op.result.type
    assert isinstance(pointer, PointerType)
    return op.num_elems.value.data * storage_bytes(pointer.pointee)


@irdl_op_definition
class IotaOp(TileOp):
    """The vector 0, 1, …, lanes - 1."""

    name = "cpu.iota"
    result = result_def()
    traits = traits_def(Pure())

    def reference(self) -> Array:
        return np.arange(shape_of(self.result.type)[0])


@irdl_op_definition
class LoadOp(TileOp):
    """`lanes` consecutive elements from the scalar pointer `ptr`; `mask` and `other` per lane.

    A scalar result reads one element. `align_bytes` is what the schedule proves of the address
    (default: the element's size).
    """

    name = "cpu.load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    align_bytes = opt_prop_def(IntegerAttr)
    is_volatile = opt_prop_def(UnitAttr)
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.GLOBAL, self.ptr),)


@irdl_op_definition
class StoreOp(TileOp):
    """Write `value` (vector or scalar) to consecutive elements at `ptr` where `mask`.

    `nontemporal` bypasses the cache where the launch finds the result larger than it.
    """

    name = "cpu.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    align_bytes = opt_prop_def(IntegerAttr)
    nontemporal = opt_prop_def(UnitAttr)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.GLOBAL, self.ptr),)


@irdl_op_definition
class PrefetchOp(TileOp):
    """Ask for `num_lines` cache lines from the scalar pointer `ptr` on; nothing is read.

    Any address is allowed. `is_write`: to be written; `is_far`: into the second-level cache.
    """

    name = "cpu.prefetch"
    ptr = operand_def()
    num_lines = prop_def(IntegerAttr)
    is_write = opt_prop_def(UnitAttr)
    is_far = opt_prop_def(UnitAttr)

    def effects(self) -> tuple[Effect, ...]:
        """Only the time of what comes later depends on it."""
        return ()


@irdl_op_definition
class GatherOp(TileOp):
    """result[l] = ptr[offsets[l]] where mask[l], else other[l]; offsets count elements."""

    name = "cpu.gather"
    ptr = operand_def()
    offsets = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.GLOBAL, self.ptr),)


@irdl_op_definition
class ScatterOp(TileOp):
    """ptr[offsets[l]] = value[l] where mask[l], in lane order."""

    name = "cpu.scatter"
    ptr = operand_def()
    offsets = operand_def()
    value = operand_def()
    mask = opt_operand_def()

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.GLOBAL, self.ptr),)


@irdl_op_definition
class LoadPointersOp(TileOp):
    """result[l] = *ptrs[l] where mask[l], else other[l], for a vector of pointers."""

    name = "cpu.load_pointers"
    ptrs = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.GLOBAL, self.ptrs),)


@irdl_op_definition
class StorePointersOp(TileOp):
    """*ptrs[l] = value[l] where mask[l], in lane order."""

    name = "cpu.store_pointers"
    ptrs = operand_def()
    value = operand_def()
    mask = opt_operand_def()

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.GLOBAL, self.ptrs),)


@irdl_op_definition
class ExtractOp(TileOp):
    """The element of `vector` at the scalar `lane` (i32 or i64)."""

    name = "cpu.extract"
    vector = operand_def()
    lane = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def reference(self, vector: Array, lane: Array) -> Array:
        return vector[int(lane)]


@irdl_op_definition
class ShuffleOp(TileOp):
    """result[l] = (lhs followed by rhs)[pattern[l]], pattern constant."""

    name = "cpu.shuffle"
    lhs = operand_def()
    rhs = operand_def()
    pattern = prop_def(DenseArrayBase)
    result = result_def()
    traits = traits_def(Pure())

    def reference(self, lhs: Array, rhs: Array) -> Array:
        return np.concatenate([lhs, rhs])[list(integers_of(self.pattern))]


@irdl_op_definition
class ReduceLanesOp(TileOp):
    """Each vector folded to a scalar by halving: lanes [0, n/2) combined with [n/2, n).

    With `in_order` each lane is combined with its neighbour instead. The region takes 2n scalars
    for n vectors and yields n, as in tt.reduce.
    """

    name = "cpu.reduce_lanes"
    srcs = var_operand_def()
    in_order = opt_prop_def(UnitAttr)
    combine = region_def("single_block")
    outputs = var_result_def()
    traits = traits_def(Pure())


# By definition: the units that a product may name; vectors have no name.
AMX_UNIT, SPLIT_AMX_UNIT, UNIT_2X2 = "amx", "amx f16", "2x2"
AMX_UNITS = (AMX_UNIT, SPLIT_AMX_UNIT)
"""The units that multiply AMX's tile registers."""


@irdl_op_definition
class DotOp(TileOp):
    """acc[m, n] += a[m, k] · b[k, n] over arena buffers by the register-blocked microkernel.

    `a` is row-major [m][k], `b` packed panels, `acc` row-major [m][n]; with `zero_init` the
    accumulator is overwritten. Element types are the buffers' pointees. With `a_stride` (i64)
    the rows of `a` lie that many elements apart, wherever they are. `next_b` with its
    `next_b_stride` (i64) is where the next product's B lies in memory, to be fetched meanwhile.
    With `b_source` and its `b_source_stride` (i64), B lies there row-major, and `b` is room
    that the product fills with panels; with `transposed_b` its transpose [n][k] lies there, row
    by row, and `b` is not used. `unit` "amx" multiplies tile registers; its panels are
    its own, those of "amx f16" hold each f16 as two bf16, and `a_room` is where it may copy rows
    of `a`. `unit` "2x2" multiplies two rows by two columns in an instruction, both packed for it.
    With `rows`, `columns` and `depth` (i64, all three, from 1 to m, n and k) only so much
    of the operands is read and summed, and what `acc` holds beyond those rows and columns is
    undefined afterwards; `rows` may stand alone. The rows of `acc` lie `acc_stride` elements apart,
    or n. With `target`, its `target_stride` (i64) and `is_first` (i1) the sum goes to the rows
    there, which may be `acc` but overlap no operand, and where `is_first` nothing is added to it;
    with limits no byte beyond them is written there. With `is_last` (i1), a product of AMX, it
    goes there only where that holds, rounded to the element type there, and to `acc` elsewhere.
    """

    name = "cpu.dot"
    a = operand_def()
    b = operand_def()
    acc = operand_def()
    a_stride = opt_operand_def()
    a_room = opt_operand_def()
    next_b = opt_operand_def()
    next_b_stride = opt_operand_def()
    b_source = opt_operand_def()
    b_source_stride = opt_operand_def()
    rows = opt_operand_def()
    columns = opt_operand_def()
    depth = opt_operand_def()
    target = opt_operand_def()
    target_stride = opt_operand_def()
    is_first = opt_operand_def()
    is_last = opt_operand_def()
    m = prop_def(IntegerAttr)
    n = prop_def(IntegerAttr)
    k = prop_def(IntegerAttr)
    zero_init = opt_prop_def(UnitAttr)
    unit = opt_prop_def(StringAttr)
    acc_stride = opt_prop_def(IntegerAttr)
    transposed_b = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        """With `b_source` it is `b` that is written first; what is fetched ahead is not read."""
        sum_ = Access(Resource.GLOBAL, self.zero_init is None, True, self.acc)
        room = () if self.a_room is None else (update(Resource.GLOBAL, self.a_room),)
        if self.target is not None:
            room = (*room, write(Resource.GLOBAL, self.target))
        if self.b_source is None:
            return (read(Resource.GLOBAL, self.a), read(Resource.GLOBAL, self.b), *room, sum_)
        source = read(Resource.GLOBAL, self.b_source)
        if self.transposed_b is not None:
            return (source, read(Resource.GLOBAL, self.a), *room, sum_)
        packed = update(Resource.GLOBAL, self.b)
        return (source, packed, read(Resource.GLOBAL, self.a), *room, sum_)


@irdl_op_definition
class PackOp(TileOp):
    """Copy a [rows, columns] matrix at `src` with leading dimension `stride` for cpu.dot.

    `role` "a": dst is row-major [rows][columns] in the microkernel's input type; "b": dst is
    packed panels of the [rows = K, columns = N] operand. `transposed`: src holds the
    transpose, element (r, c) at src[c * stride + r]. `unit` as in cpu.dot. With `num_rows` and
    `num_columns` (i64, from 1 to those of the matrix) only so much of it is read; zeros stand for
    the rest up to `filled_rows` and `filled_columns`, and what lies behind is undefined. All four
    or none are there.
    """

    name = "cpu.pack"
    src = operand_def()
    stride = operand_def()
    dst = operand_def()
    num_rows = opt_operand_def()
    num_columns = opt_operand_def()
    filled_rows = opt_operand_def()
    filled_columns = opt_operand_def()
    rows = prop_def(IntegerAttr)
    columns = prop_def(IntegerAttr)
    role = prop_def(StringAttr)
    transposed = opt_prop_def(UnitAttr)
    unit = opt_prop_def(StringAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.GLOBAL, self.src), write(Resource.GLOBAL, self.dst))


def unit_of(op: DotOp | PackOp) -> str:
    """The unit that a product or a packing names; empty for vectors."""
    return "" if op.unit is None else op.unit.data


@irdl_op_definition
class PrintOp(TileOp):
    """Print one element of a tile of `shape`: `args` at the `indices` (i32), as tt.print does."""

    name = "cpu.print"
    prefix = prop_def(StringAttr)
    hex = prop_def()
    is_signed = opt_prop_def(DenseArrayBase, prop_name="isSigned")
    shape = prop_def(DenseArrayBase)
    args = var_operand_def()
    indices = var_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.CONSOLE),)


@irdl_op_definition
class AssertOp(TileOp):
    """Report `message` with the program and the element's `indices` unless `condition`."""

    name = "cpu.assert"
    message = prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    condition = operand_def()
    indices = var_operand_def()

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.CONTROL),)


CPU_OPS = (
    NestOp,
    YieldOp,
    AllocOp,
    IotaOp,
    LoadOp,
    StoreOp,
    PrefetchOp,
    GatherOp,
    ScatterOp,
    LoadPointersOp,
    StorePointersOp,
    ExtractOp,
    ShuffleOp,
    ReduceLanesOp,
    DotOp,
    PackOp,
    PrintOp,
    AssertOp,
    *LAUNCH_OPS,
)
