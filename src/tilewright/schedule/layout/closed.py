"""Decides tiles that were left open, and are asked for in a layout that they cannot be made in.

A tile that depends on scalars and ranges alone is computed again in each layout that asks for it.
Where its op has no operands that fit such a layout (a reshape across the bits of a thread), it is
computed once, in the default layout, and converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.regions import ControlFlowOp
from tilewright.ir.types import shape_of
from tilewright.layout.linear import LinearLayout
from tilewright.ops.function import FuncOp
from tilewright.schedule.layout.anchors import Anchored
from tilewright.schedule.layout.decided import Layouts
from tilewright.schedule.layout.transfer import is_flexible, is_tile, operand_layouts
from tilewright.support.errors import UnsupportedLayout

_Asked = tuple[SSAValue, LinearLayout]


def close_open_tiles(kernel: FuncOp, layouts: Layouts) -> None:
    """Give the default layout to open tiles that cannot be made as they are asked for."""
    seen: set[_Asked] = set()
    for op in kernel.walk():
        pending = list(_asked_by(op, layouts))
        while pending:
            asked = pending.pop()
            value, layout = asked
            maker = value.owner
            is_open = layouts.own.get(value) is None and is_tile(value)
            if not is_open or asked in seen or isinstance(maker, Block) or not is_flexible(maker):
                continue
            seen.add(asked)
            pending += _sources(maker, layout, layouts)


def _asked_by(op: Operation, layouts: Layouts) -> Iterator[_Asked]:
    """The tiles that a decided op takes, or that control flow hands on, in their layouts."""
    if isinstance(op, ControlFlowOp):
        for edge in op.edges():
            yield from _placed(edge.values, layouts.carried[op, edge.target])
    elif op in layouts.of_ops:
        yield from _placed(op.operands, layouts.of_ops[op].operands)


def _placed(values: Sequence[SSAValue], layouts: Sequence[LinearLayout | None]) -> Iterator[_Asked]:
    for value, layout in zip(values, layouts, strict=True):
        if layout is not None:
            yield value, layout


def _sources(op: Operation, layout: LinearLayout, layouts: Layouts) -> Iterator[_Asked]:
    """What an open op takes for its result in a layout, or in the default one where that fails."""
    try:
        return _placed(op.operands, operand_layouts(op, layout))
    except UnsupportedLayout:
        default = layouts.default(shape_of(op.results[0].type))
        operands = tuple(operand_layouts(op, default))
        layouts.of_ops[op] = Anchored(operands, (default,) * len(op.results))
        layouts.own.update(dict.fromkeys(op.results, default))
        return _placed(op.operands, operands)
