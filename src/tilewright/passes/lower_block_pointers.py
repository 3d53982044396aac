"""Rewrites block pointers to tiles of plain pointers with masks.

    %p = make_tensor_ptr %base, [%n], [%s], [%o]; load %p {boundaryCheck = [0]}
    ⇒ load (splat %base + (splat %o + arange) * splat %s), mask 0 <= index < %n

Requires T0; produces T0 without block pointers. Before the passes that read pointer structure.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.attributes import integers_of
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.types import shape_of
from tilewright.ops.block_pointers.ir import AdvanceOp, MakeTensorPtrOp
from tilewright.ops.function import functions_of
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.passes.expand_structures import Expansion, Structure, block_type
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class LowerBlockPointers(Pass):
    """The pass; see the module."""

    name = "lower-block-pointers"

    def apply(self, module: ModuleOp) -> None:
        """Rewrite every function that makes a block pointer."""
        for op in functions_of(module):
            if any(isinstance(o, MakeTensorPtrOp) for o in op.walk()):
                expansion = Expansion(
                    {MakeTensorPtrOp: _make, AdvanceOp: _advance, LoadOp: _load, StoreOp: _store}
                )
                expansion.run(op.body.block)
                expansion.finish()


def _make(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, MakeTensorPtrOp)
    block = block_type(op.result.type)
    assert block is not None
    parts = (tuple(op.shape), tuple(op.strides), tuple(op.offsets))
    expansion.found[op.result] = Structure(op.base, *parts, block)
    return True


def _advance(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, AdvanceOp)
    structure = expansion.found[op.ptr]
    make = TileBuilder(op)
    moved = [
        make.binary("addi", offset, step)
        for offset, step in zip(structure.offsets, op.offsets, strict=True)
    ]
    kept = (structure.base, *structure.shape, *structure.strides)
    expansion.found[op.result] = structure.with_scalars((*kept, *moved))
    return True


def _address(
    op: LoadOp | StoreOp, structure: Structure
) -> tuple[TileBuilder, SSAValue, SSAValue | None]:
    make = TileBuilder(op)
    shape = shape_of(structure.block)
    indices = [make.indices(o, n) for o, n in zip(structure.offsets, shape, strict=True)]
    mask = make.mask(structure, indices, shape, _checked_dims(op))
    return make, make.pointers(structure, indices, shape), mask


def _checked_dims(op: LoadOp | StoreOp) -> tuple[int, ...]:
    return integers_of(op.boundary_check)


def _hints(op: Operation) -> dict[str, Attribute]:
    kept = ("cache", "evict", "isVolatile")
    return {name: op.properties[name] for name in kept if name in op.properties}


def _load(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, LoadOp)
    structure = expansion.found.get(op.ptr)
    if structure is None:
        return False
    make, pointers, mask = _address(op, structure)
    operands = [pointers]
    if mask is not None:
        code = 0 if op.padding is None else op.padding.value.data
        operands += [mask, make.padding(structure, shape_of(structure.block), code)]
    sizes = [1, *([1, 1] if mask is not None else [0, 0])]
    properties = {**_hints(op), "operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}
    loaded = make.emit(LoadOp, operands, op.result.type, properties)
    op.result.replace_all_uses_with(loaded)
    return True


def _store(expansion: Expansion, op: Operation) -> bool:
    assert isinstance(op, StoreOp)
    structure = expansion.found.get(op.ptr)
    if structure is None:
        return False
    _, pointers, mask = _address(op, structure)
    operands = [pointers, op.value, *(() if mask is None else (mask,))]
    block = op.parent
    assert block is not None
    block.insert_op_before(build(StoreOp, operands, (), _hints(op), location=op.location), op)
    return True
