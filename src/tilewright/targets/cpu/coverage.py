"""What the CPU makes of each op: which ones it has code for, and which ones it refuses."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.regions import ControlFlowOp
from tilewright.ops.debug.ir import AssumeOp, BarrierOp
from tilewright.ops.function import FuncOp
from tilewright.ops.inline.ir import InlineAsmOp
from tilewright.ops.program.ir import GetGridExtentOp
from tilewright.passes.coverage import Gap, covers
from tilewright.targets.cpu.forms import SCALAR_STEPS, STEPS
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.cpu.schedule.block_steps import kind_of_root
from tilewright.targets.cpu.schedule.inline import is_tile, reads

# What has no code of its own.
_SILENT = (AssumeOp, BarrierOp, FuncOp, ModuleOp)
_RULE = Gap("lowering rule", "@DEFAULT_RULES.register({op})")
_FORM = Gap("form on tiles", "@STEPS.register({op})")


def find_gap(op: Operation) -> Gap | None:
    """What a T0 op lacks to be lowered for a CPU."""
    cls = type(op)
    if isinstance(op, ElementwiseOp):
        return None if CPU_RULES.find(cls) is not None else _RULE
    if isinstance(op, ControlFlowOp):
        return None if CPU_RULES.find(cls) is not None else _RULE
    if SCALAR_STEPS.find(cls) is not None or isinstance(op, _SILENT):
        return None
    if op.has_trait(IsTerminator) or STEPS.find(cls) is not None or reads(op) is not None:
        return None
    if any(map(is_tile, (*op.operands, *op.results))):
        return None if kind_of_root(cls) is not None else _FORM
    return None if CPU_RULES.find(cls) is not None else _RULE


CPU_COVERAGE = covers("cpu", "the CPU", find_gap)
CPU_COVERAGE.unsupported(
    GetGridExtentOp,
    "the CPU runs no persistent programs, which take the grid of a launch as a parameter",
    "ask for it by num_programs(axis)",
)
CPU_COVERAGE.unsupported(
    InlineAsmOp,
    "inline_asm_elementwise(): the assembly is a GPU's and cannot run on a CPU",
    "write the computation with functions of the language; they compile to as few instructions "
    "on every target",
)
