"""The fixed list of dialects that a module of ours may use, and the context that knows them."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Attribute, Dialect, Operation

from tilewright.ir.annotations import AccessAttr, CopyAttr, ProductAttr
from tilewright.ir.attributes import FastMathAttr
from tilewright.ir.op import ADDED_OPS, ops_of
from tilewright.ir.schedule_attributes import PlaceAttr, ScheduleAttr
from tilewright.ir.types import DescriptorType, PointerType
from tilewright.ops import (
    atomics,
    creation,
    debug,
    extern,
    function,
    indexing,
    inline,
    matmul,
    memory,
    program,
    reduction,
    shape,
)
from tilewright.ops.control_flow import CONTROL_FLOW_OPS
from tilewright.ops.elementwise import ELEMENTWISE_OPS

_BEFORE = (function, program, creation, shape)
_AFTER = (extern, memory, matmul, reduction, indexing, atomics, debug, inline)
TILE_OPS: tuple[type[Operation], ...] = (
    *(op for family in _BEFORE for op in ops_of(family)),
    *ELEMENTWISE_OPS,  # most of them are rows of a table
    *(op for family in _AFTER for op in ops_of(family)),
)
TILE_ATTRIBUTES: tuple[type[Attribute], ...] = (
    PointerType,
    DescriptorType,
    FastMathAttr,
    ProductAttr,
    AccessAttr,
    CopyAttr,
    ScheduleAttr,
    PlaceAttr,
)


def make_dialects(
    ops: tuple[type[Operation], ...], attributes: tuple[type[Attribute], ...]
) -> list[Dialect]:
    """Group ops and attributes by the dialect name before their first dot."""
    names = dict.fromkeys(item.name.split(".", 1)[0] for item in (*ops, *attributes))
    return [
        Dialect(
            name,
            [op for op in ops if op.name.split(".", 1)[0] == name],
            [attribute for attribute in attributes if attribute.name.split(".", 1)[0] == name],
        )
        for name in names
    ]


def tile_context(extra: tuple[Dialect, ...] = ()) -> Context:
    """A context that parses builtin, scf and every tile op; `extra` adds a target's dialect."""
    context = Context()
    context.load_dialect(Builtin)
    ops = (*CONTROL_FLOW_OPS, *TILE_OPS, *ADDED_OPS.values())
    for dialect in (*make_dialects(ops, TILE_ATTRIBUTES), *extra):
        context.load_dialect(dialect)
    return context
