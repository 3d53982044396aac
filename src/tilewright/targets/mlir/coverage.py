"""What the MLIR target makes of each op: which it writes, and which it refuses.

The rules are registered by `emit.py`, which the manifest imports.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from tilewright.ops.function import FuncOp
from tilewright.ops.inline.ir import InlineAsmOp
from tilewright.ops.program.ir import ClockOp, GetGridExtentOp
from tilewright.passes.coverage import Gap, covers
from tilewright.targets.mlir.emitter import RULES, is_lazy

# What has no line of its own.
_SILENT = (FuncOp, ModuleOp)
_RULE = Gap("rule", "@RULES.register({op})")


def find_gap(op: Operation) -> Gap | None:
    """What a T0 op lacks to be written."""
    if isinstance(op, _SILENT) or op.has_trait(IsTerminator):
        return None
    return None if is_lazy(op) or RULES.find(type(op)) is not None else _RULE


MLIR_COVERAGE = covers("mlir", "MLIR's core dialects", find_gap)
MLIR_COVERAGE.unsupported(
    GetGridExtentOp,
    "MLIR's core dialects have no persistent programs, which take the grid as a parameter",
    "ask for it by num_programs(axis)",
)
MLIR_COVERAGE.unsupported(
    InlineAsmOp,
    "inline_asm_elementwise(): the assembly is a GPU's, which MLIR's core dialects cannot say",
    "write the computation with functions of the language; they are the same on every target",
)
MLIR_COVERAGE.unsupported(
    ClockOp,
    "a clock is no op of MLIR's core dialects",
    "measure on the CPU target (TILEWRIGHT_TARGET=cpu), or around the launch",
)
