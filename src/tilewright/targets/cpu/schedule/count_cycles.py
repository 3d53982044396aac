"""Has a kernel count the cycles that its parts take, for `explain --measure`.

A look at the counter stands before and behind each nest, product and what packs for one, and
around the whole program. It takes about 20 cycles, and adding its numbers up about 40 more, which
no part is charged with: what takes 1000 cycles is measured within some percent.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Attribute, Operation

from tilewright.ir.op import build
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.targets.cpu.launch_ops import EndCountOp, StartCountOp
from tilewright.targets.cpu.ops import AllocOp
from tilewright.targets.cpu.report import ReportBuilder


def count_cycles(kernel: FuncOp, reports: ReportBuilder) -> None:
    """Surround the ops that the report is about, and the program."""
    for op, counted in reports.counted.items():
        _surround(op, op, reports.number_of(counted), counted.is_beside)
    block = kernel.body.block
    first = next(op for op in block.ops if not isinstance(op, AllocOp))
    last = block.last_op
    assert last is not None
    before = last.prev_op
    if before is not None and first is not last:
        _surround(first, before, 0, False)


def num_counted_of(module: ModuleOp) -> int:
    """How many parts a kernel counts the cycles of, the program among them; 0 if it does not."""
    ends = (op for op in find_kernel(module).walk() if isinstance(op, EndCountOp))
    return max((op.part.value.data + 1 for op in ends), default=0)


def _surround(first: Operation, last: Operation, number: int, is_beside: bool) -> None:
    """Count from before one op to behind another one of its block."""
    block = first.parent_block()
    assert block is not None
    start = build(StartCountOp, (), (i64,), location=first.location)
    properties: dict[str, Attribute] = {"part": IntegerAttr(number, i64)}
    if is_beside:
        properties["beside"] = UnitAttr()
    block.insert_op_before(start, first)
    end = build(EndCountOp, start.results, (), properties, location=last.location)
    block.insert_op_after(end, last)
