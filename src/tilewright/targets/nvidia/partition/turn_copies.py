"""Turns what threads are to copy, where its elements are adjacent along columns (T0 to T0).

    %x = load %p                 ⇒   %t = trans (load (trans %p, trans %mask))
    dot …, %x                        dot …, %t

Weights of experts lie so: the elements of a column of B are adjacent. A slot of a ring has rows
that threads copy 16 bytes at once, and a product reads it transposed. Threads do not move anything
for it: a transposed tile of pointers is the same pointers.

Behind `bulk-access`, which turns what the copy engine takes; where roles are asked for.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i32
from xdsl.ir import SSAValue

from tilewright.analysis.facts import AxisFacts
from tilewright.ir.edits import erase
from tilewright.ir.passes import Pass
from tilewright.ir.types import element_of, shape_of, tile_of
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.shape.ir import TransOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.partition.copied_loads import loads_of_products
from tilewright.targets.nvidia.partition.decide import ROLES_HINT

# By definition: the order of the dims of a transposed tile.
_COLUMNS_FIRST = (1, 0)


@dataclass(frozen=True)
class TurnCopies(Pass):
    """The pass; see the module. `groups` are those that a launch asks for."""

    groups: int = 0
    name = "turn-copies"
    after = ("select-tensor-maps", "split-carried-pointers", "merge-duplicates", "bulk-access")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the loads of a kernel that is to have roles."""
        kernel = find_kernel(module)
        if not (self.groups or any(ROLES_HINT in op.attributes for op in kernel.walk())):
            return
        loads = [op for op in loads_of_products(kernel) if len(shape_of(op.result.type)) == 2]
        facts = AxisFacts(kernel) if loads else None
        for load in loads:
            if facts is not None and facts.coalesce_order(load.ptr)[0] == 0:
                _turn(load)


def _turn(load: LoadOp) -> None:
    make = TileBuilder(load)
    operands = [_turned(make, operand) for operand in load.operands]
    rows, columns = shape_of(load.result.type)
    loaded = tile_of(element_of(load.result.type), (columns, rows))
    copy = make.emit(LoadOp, operands, loaded, load.properties, attributes=load.attributes)
    result = _turned(make, copy)
    result.name_hint = load.result.name_hint
    load.result.replace_all_uses_with(result)
    erase(load)


def _turned(make: TileBuilder, value: SSAValue) -> SSAValue:
    rows, columns = shape_of(value.type)
    order = DenseArrayBase.from_list(i32, _COLUMNS_FIRST)
    type_ = tile_of(element_of(value.type), (columns, rows))
    return make.emit(TransOp, (value,), type_, {"order": order})
