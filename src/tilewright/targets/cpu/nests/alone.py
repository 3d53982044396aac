"""Tiles of atomics in two forms: for a launch that runs them alone, and for all others.

    if cpu.is_alone:  nest of loads, operations and stores (`updates.py`)
    else:             nest of atomics, one element after the other

An atomic holds one number and costs 20 to 30 cycles: adding rows to a table took 5.3 ns an f32 and
takes 0.15, counting random numbers 15 ns an element and takes 0.5 (measured: one thread of a
Zen 5, busy, 2026-11-23).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region

from tilewright.ir.op import build
from tilewright.ir.types import i1
from tilewright.ops.atomics.ir import AtomicRmwOp
from tilewright.ops.control_flow import IfOp, WhileOp, YieldOp
from tilewright.ops.function import FuncOp
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.launch_ops import IsAloneOp
from tilewright.targets.cpu.nests import nest
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import Root, RootKind

_REMARK = (
    "atomics run element by element beside other launches that run some; a launch that runs them "
    "alone on one thread reads and writes without"
)


def may_be_alone(kernel: FuncOp) -> bool:
    """Whether a kernel waits for nobody, so that others may wait for it.

    A loop with a condition may run until another launch has written something.
    """
    return not any(isinstance(op, WhileOp) for op in kernel.walk())


def has_form(lowering: Lowering, roots: Sequence[Root]) -> bool:
    """Whether a nest updates memory that only this process' launches may be updating.

    The scope "sys" is for who shares the memory with other processes.
    """
    op = roots[0].op
    if not lowering.may_be_alone or roots[0].kind is not RootKind.ATOMIC:
        return False
    return isinstance(op, AtomicRmwOp) and op.atomic().scope != "sys"


def emit_forms(lowering: Lowering, out: Block, roots: Sequence[Root]) -> None:
    """Append both forms of the nest of an atomic."""
    (root,) = roots
    location = root.op.location
    alone, beside = Block(), Block()
    update = replace(root, kind=RootKind.UPDATE)
    short = nest.emit_nest(lowering, alone, [update], is_detour=True)
    long = nest.emit_nest(lowering, beside, [root])
    counted, summaries = lowering.report.counted, lowering.report.nests
    counted[short] = counted[long]
    summaries[-1] = replace(summaries[-1], remarks=(_REMARK,))
    for block in (alone, beside):
        block.add_op(build(YieldOp, location=location))
    asked = build(IsAloneOp, (), (i1,), location=location)
    out.add_op(asked)
    regions = (Region(alone), Region(beside))
    out.add_op(build(IfOp, asked.results, (), None, regions, location))
