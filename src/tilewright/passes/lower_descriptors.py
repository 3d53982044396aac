"""Rewrites tensor descriptors to tiles of plain pointers with masks (compatibility mode).

    descriptor_load %d[%i]
    ⇒ load (splat base + (splat %i + arange) * splat stride), mask 0 <= index < shape, padding

Requires T0; produces T0 without descriptors. For targets without hardware for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.types import element_of, shape_of, tile_of
from tilewright.ops.atomics.ir import AtomicRmwOp
from tilewright.ops.descriptors.ir import (
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
)
from tilewright.ops.function import FuncOp, functions_of
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.ops.shape.ir import ReshapeOp
from tilewright.passes.expand_structures import Expansion, Rule, Structure, block_type
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class LowerDescriptors(Pass):
    """The pass; see the module."""

    name = "lower-descriptors"

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function that makes a descriptor."""
        for function in functions_of(module):
            expand_descriptors(function, POINTER_RULES)


def expand_descriptors(function: FuncOp, rules: dict[type[Operation], Rule]) -> None:
    """Rewrite a function, if it makes a descriptor, by a rule for each op that uses one."""
    if any(isinstance(op, MakeTensorDescriptorOp) for op in function.walk()):
        expansion = Expansion(rules)
        expansion.run(function.body.block)
        expansion.finish()


def _make(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, MakeTensorDescriptorOp)
    block = block_type(op.result.type)
    assert block is not None
    padding = 0 if op.padding is None else op.padding.value.data
    shape, strides = tuple(op.shape), tuple(op.strides)
    expansion.found[op.result] = Structure(op.base, shape, strides, (), block, padding)
    return True


@dataclass(frozen=True)
class _Access:
    """The pointers and the mask of one access, over `shape`."""

    make: TileBuilder
    structure: Structure
    shape: tuple[int, ...]
    pointers: SSAValue
    mask: SSAValue

    def load(self, result_type: Attribute) -> SSAValue:
        """Read with the descriptor's padding."""
        padding = self.make.padding(self.structure, self.shape, self.structure.padding)
        sizes: dict[str, Attribute] = {
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, 1, 1])
        }
        type_ = padding.type
        loaded = self.make.emit(LoadOp, (self.pointers, self.mask, padding), type_, sizes)
        return _shaped(self.make, loaded, shape_of(result_type))


def _shaped(make: TileBuilder, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
    """A tile under a shape that drops or adds unit dimensions."""
    if shape_of(value.type) == shape:
        return value
    return make.emit(ReshapeOp, (value,), tile_of(element_of(value.type), shape))


def _block_access(
    expansion: Expansion, op: Operation, desc: SSAValue, starts: Sequence[SSAValue]
) -> _Access:
    structure = expansion.found[desc]
    make = TileBuilder(op)
    shape = shape_of(structure.block)
    indices = [make.indices(start, size) for start, size in zip(starts, shape, strict=True)]
    return _access(make, structure, indices, shape)


def _access(
    make: TileBuilder, structure: Structure, indices: list[SSAValue], shape: tuple[int, ...]
) -> _Access:
    mask = make.mask(structure, indices, shape, range(len(shape)))
    assert mask is not None
    return _Access(make, structure, shape, make.pointers(structure, indices, shape), mask)


def _row_access(
    expansion: Expansion, op: Operation, desc: SSAValue, rows: SSAValue, column: SSAValue
) -> _Access:
    structure = expansion.found[desc]
    make = TileBuilder(op)
    shape = (shape_of(rows.type)[0], shape_of(structure.block)[-1])
    return _access(make, structure, [rows, make.indices(column, shape[1])], shape)


def _load(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, DescriptorLoadOp)
    access = _block_access(expansion, op, op.desc, op.indices)
    op.result.replace_all_uses_with(access.load(op.result.type))
    return True


def _gather(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, DescriptorGatherOp)
    access = _row_access(expansion, op, op.desc, op.x_offsets, op.y_offset)
    op.result.replace_all_uses_with(access.load(op.result.type))
    return True


def _write(op: Operation, access: _Access, value: SSAValue) -> None:
    source = _shaped(access.make, value, access.shape)
    block = op.parent
    assert block is not None
    operands = (access.pointers, source, access.mask)
    block.insert_op_before(build(StoreOp, operands, location=op.location), op)


def _store(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, DescriptorStoreOp)
    _write(op, _block_access(expansion, op, op.desc, op.indices), op.src)
    return True


def _scatter(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, DescriptorScatterOp)
    access = _row_access(expansion, op, op.desc, op.x_offsets, op.y_offset)
    _write(op, access, op.src)
    return True


def _reduce(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, DescriptorReduceOp)
    access = _block_access(expansion, op, op.desc, op.indices)
    source = _shaped(access.make, op.src, access.shape)
    operands = (access.pointers, source, access.mask)
    access.make.emit(AtomicRmwOp, operands, source.type, {"atomic_rmw_op": op.kind})
    return True


POINTER_RULES: dict[type[Operation], Rule] = {
    MakeTensorDescriptorOp: _make,
    DescriptorLoadOp: _load,
    DescriptorStoreOp: _store,
    DescriptorReduceOp: _reduce,
    DescriptorGatherOp: _gather,
    DescriptorScatterOp: _scatter,
}
"""What each op on a descriptor is by plain pointers; a rule may stand in for one of them."""
