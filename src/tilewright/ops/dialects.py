"""The fixed list of dialects that a module of ours may use, and the context that knows them."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Attribute, Dialect, Operation

from tilewright.ir.attributes import FastMathAttr
from tilewright.ir.op import ADDED_OPS, ops_of
from tilewright.ir.plans import AccessAttr, CopyAttr, ExchangeAttr, ProductAttr
from tilewright.ir.schedule_attributes import PlaceAttr, ScheduleAttr
from tilewright.ir.types import DescriptorType, PointerType
from tilewright.ops import function
from tilewright.ops.atomics import ir as atomics
from tilewright.ops.block_pointers import ir as block_pointers
from tilewright.ops.control_flow import CONTROL_FLOW_OPS
from tilewright.ops.creation import ir as creation
from tilewright.ops.debug import ir as debug
from tilewright.ops.descriptors import ir as descriptors
from tilewright.ops.elementwise.ir import ELEMENTWISE_OPS
from tilewright.ops.extern import ir as extern
from tilewright.ops.indexing import ir as indexing
from tilewright.ops.inline import ir as inline
from tilewright.ops.matmul import ir as matmul
from tilewright.ops.memory import ir as memory
from tilewright.ops.program import ir as program
from tilewright.ops.reduction import ir as reduction
from tilewright.ops.shape import ir as shape

_BEFORE = (function, program, creation, shape)
_AFTER = (
    extern,
    memory,
    block_pointers,
    descriptors,
    matmul,
    reduction,
    indexing,
    atomics,
    debug,
    inline,
)
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
    ExchangeAttr,
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
    known = make_dialects(ops, TILE_ATTRIBUTES)
    for dialect in (*known, *extra):
        if any(dialect.name == other.name for other in known) and dialect not in known:
            _add_to_known(context, dialect)
        else:
            context.load_dialect(dialect)
    return context


def _add_to_known(context: Context, dialect: Dialect) -> None:
    """Add the ops and attributes that a target has in a dialect of the tile IR."""
    for op in dialect.operations:
        context.load_op(op)
    for attribute in dialect.attributes:
        context.load_attr_or_type(attribute)
