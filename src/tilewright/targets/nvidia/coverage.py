"""What NVIDIA GPUs make of each op: which ones they have rules for, and which ones they refuse."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.regions import ControlFlowOp
from tilewright.ops.descriptors.ir import (
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
)
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.passes.coverage import Gap, covers
from tilewright.schedule.layout.anchors import ANCHORS
from tilewright.schedule.layout.transfer import FLEXIBLE, is_tile
from tilewright.targets.nvidia.rules import NVIDIA_RULES

# What the schedule makes other ops of: products by their plan, copies through tensor maps.
_SCHEDULED = (
    DotOp,
    DescriptorLoadOp,
    DescriptorStoreOp,
    DescriptorReduceOp,
    FuncOp,
    ModuleOp,
)
_LAYOUT = Gap("layout rule", "@ANCHORS.register({op})")
_THREADS = Gap("rule for threads", "@SIMT_RULES.register({op})")
_RULE = Gap("lowering rule", "@DEFAULT_RULES.register({op})")


def find_gap(op: Operation) -> Gap | None:
    """What a T0 op lacks to be lowered for the threads of a GPU."""
    cls = type(op)
    if isinstance(op, _SCHEDULED) or op.has_trait(IsTerminator):
        return None
    has_rule = NVIDIA_RULES.find(cls) is not None
    if isinstance(op, ControlFlowOp):
        return None if has_rule or DEFAULT_RULES.find(cls) is not None else _THREADS
    if isinstance(op, ElementwiseOp):
        return None if has_rule or DEFAULT_RULES.find(cls) is not None else _RULE
    if any(map(is_tile, (*op.operands, *op.results))):
        if not issubclass(cls, FLEXIBLE) and ANCHORS.find(cls) is None:
            return _LAYOUT
        return None if has_rule else _THREADS
    return None if has_rule or DEFAULT_RULES.find(cls) is not None else _RULE


NVIDIA_COVERAGE = covers("nvidia", "NVIDIA GPUs", find_gap)
