"""The fixed list of dialects that a module of ours may use, and the context that knows them."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Attribute, Dialect, Operation

from tilewright.ir.annotations import ProductAttr
from tilewright.ir.attributes import FastMathAttr
from tilewright.ir.types import DescriptorType, PointerType
from tilewright.ops.atomics import ATOMIC_OPS
from tilewright.ops.control_flow import CONTROL_FLOW_OPS
from tilewright.ops.creation import CREATION_OPS
from tilewright.ops.debug import DEBUG_OPS
from tilewright.ops.elementwise import ELEMENTWISE_OPS
from tilewright.ops.extern import EXTERN_OPS
from tilewright.ops.function import FUNCTION_OPS
from tilewright.ops.indexing import INDEXING_OPS
from tilewright.ops.inline import INLINE_OPS
from tilewright.ops.matmul import MATMUL_OPS
from tilewright.ops.memory import MEMORY_OPS
from tilewright.ops.program import PROGRAM_OPS
from tilewright.ops.reduction import REDUCTION_OPS
from tilewright.ops.shape import SHAPE_OPS

TILE_OPS: tuple[type[Operation], ...] = (
    *FUNCTION_OPS,
    *PROGRAM_OPS,
    *CREATION_OPS,
    *SHAPE_OPS,
    *ELEMENTWISE_OPS,
    *EXTERN_OPS,
    *MEMORY_OPS,
    *MATMUL_OPS,
    *REDUCTION_OPS,
    *INDEXING_OPS,
    *ATOMIC_OPS,
    *DEBUG_OPS,
    *INLINE_OPS,
)
TILE_ATTRIBUTES: tuple[type[Attribute], ...] = (
    PointerType,
    DescriptorType,
    FastMathAttr,
    ProductAttr,
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
    ops = (*CONTROL_FLOW_OPS, *TILE_OPS)
    for dialect in (*make_dialects(ops, TILE_ATTRIBUTES), *extra):
        context.load_dialect(dialect)
    return context
