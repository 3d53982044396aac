"""Ends a nest: its results, and the stores that waited in the arena."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import i1
from tilewright.ops.control_flow import IfOp, YieldOp
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.full_chunks import find_prefixes
from tilewright.targets.cpu.nests.lane_loops import Nest, in_chunk, lane_chunks, loop_over
from tilewright.targets.cpu.nests.stores import store
from tilewright.targets.cpu.nests.summary import names_of
from tilewright.targets.cpu.ops import NestOp
from tilewright.targets.cpu.ops import YieldOp as NestYieldOp
from tilewright.targets.cpu.schedule.roots import Root
from tilewright.targets.cpu.schedule.storage import Buffer


def finish(nest: Nest, out: Block, block: Block, flag: SSAValue | None) -> list[Operation]:
    """Close the region, append the nest, and copy redirected stores to their place.

    The result is the nest, then the copies.
    """
    outputs = [value for _, value in nest.scalars]
    if flag is not None:
        outputs.append(flag)
    location = nest.roots[0].op.location
    block.add_op(build(NestYieldOp, outputs, location=location))
    properties: dict[str, Attribute] = {
        "bounds": DenseArrayBase.from_list(i64, list(nest.space)),
        "vector": IntegerAttr(nest.lanes, i64),
        "summary": StringAttr(", ".join(names_of(nest))),
    }
    types = [value.type for value in outputs]
    op = build(NestOp, (), types, properties, (Region(block),), location)
    out.add_op(op)
    results = zip(nest.scalars, op.results[: len(nest.scalars)], strict=True)
    nest.lowering.define({value: result for (value, _), result in results})
    if not nest.aside:
        return [op]
    return [op, *_copy_back(nest, out, op.results[-1] if flag is not None else None)]


def _copy_back(nest: Nest, out: Block, flag: SSAValue | None) -> list[Operation]:
    if flag is None:
        return [_emit_copy(nest, out, root, buffer) for root, buffer in nest.aside.items()]
    then, otherwise = Block(), Block()
    location = nest.roots[0].op.location
    copies = [_emit_copy(nest, otherwise, root, buffer) for root, buffer in nest.aside.items()]
    then.add_op(build(YieldOp, location=location))
    otherwise.add_op(build(YieldOp, location=location))
    assert flag.type == i1
    out.add_op(build(IfOp, (flag,), (), None, (Region(then), Region(otherwise)), location))
    return copies


def _emit_copy(nest: Nest, out: Block, root: Root, buffer: Buffer) -> Operation:
    """A small nest that moves a redirected store's values from the arena to memory."""
    block = Block()
    ev = Evaluator(nest.lowering, Emitter(block, root.op.location), nest.lanes)
    copy = Nest(nest.lowering, [root], nest.body, nest.lane_dim, nest.lanes, ev)
    if nest.lane_dim is not None:
        copied = tuple(access for access in nest.body.accesses if access.op is root.op)
        copy.prefixes = find_prefixes(ev, copied) or ()

    def body() -> None:
        coords = copy.coords()
        store(ev, root.op, coords, ev.read_buffer(buffer, coords, ev.lanes > 1))

    dims = [d for d, size in enumerate(copy.space) if size > 1 and d != copy.lane_dim]

    def chunks_of_lanes() -> None:
        for chunk in lane_chunks(copy):
            in_chunk(copy, chunk, body)

    loop_over(copy, dims, chunks_of_lanes)
    block.add_op(build(NestYieldOp, location=root.op.location))
    properties: dict[str, Attribute] = {
        "bounds": DenseArrayBase.from_list(i64, list(copy.space)),
        "vector": IntegerAttr(copy.lanes, i64),
        "summary": StringAttr("copy of redirected store"),
    }
    op = build(NestOp, (), (), properties, (Region(block),), root.op.location)
    out.add_op(op)
    return op
