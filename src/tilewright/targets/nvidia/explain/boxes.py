"""Which plain loads and stores the copy engine could move, when, and why not the others.

Nothing is rewritten by it: it says what a pass that did so would find.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.box import as_box
from tilewright.analysis.affine.tensor_box import TensorBox
from tilewright.analysis.facts import AxisFacts
from tilewright.ir.locations import describe
from tilewright.ir.types import shape_of
from tilewright.machine.model import MachineModel
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tma.boxes import plan_boxes


@dataclass(frozen=True)
class BoxSummary:
    """One load or store of a tile on T0: the engine could move it, or `why_not` says why not.

    `tests` are what would have to hold at a launch, or in every tile, in the kernel's names.
    """

    operation: str
    line: str
    why_not: str = ""
    tests: tuple[str, ...] = ()


def explain_boxes(module: ModuleOp, machine: MachineModel) -> tuple[BoxSummary, ...]:
    """Every load and store of a tile of pointers of a T0 module, in the order of the text."""
    accesses, facts = Accesses(), AxisFacts(module)
    found: list[BoxSummary] = []
    for op in module.walk():
        if type(op) not in (LoadOp, StoreOp) or not shape_of(op.operands[0].type):
            continue
        found.append(_summary(op, as_box(op, accesses, facts, machine)))
    return tuple(found)


def _summary(op: Operation, box: TensorBox | str) -> BoxSummary:
    name, line = op.name.partition(".")[2], describe(op)
    if isinstance(box, str):
        return BoxSummary(name, line, box)
    plan = plan_boxes(tuple(dim.extent for dim in box.dims), box.element_bytes)
    if isinstance(plan, str):
        return BoxSummary(name, line, plan)
    tests = [*map(str, box.guards), *(f"{part} in every tile" for part in box.within)]
    return BoxSummary(name, line, tests=tuple(tests))
