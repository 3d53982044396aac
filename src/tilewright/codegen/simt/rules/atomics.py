"""Atomics: one thread acts for each element, and hands the old value to those with copies."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from tilewright.codegen.simt.combine import move_registers_by
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.flow import only_where
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.rules.memory import both, owns_elements, vector_elems
from tilewright.codegen.simt.services import AtomicAccess
from tilewright.codegen.simt.slots import read_slots, write_slots
from tilewright.codegen.simt.words import from_bits, storage_bits, to_bits
from tilewright.ir import types as ir
from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ops.atomics.ir import (
    AtomicCasOp,
    AtomicLoadOp,
    AtomicOp,
    AtomicRmwOp,
    AtomicStoreOp,
)
from tilewright.schedule.atomics import (
    is_result_used,
    plan_broadcast,
    waits_after,
    waits_before,
)
from tilewright.schedule.scratch import scratch_offset

_FLOATS: dict[Attribute, str] = {ir.f16: "f16", ir.bf16: "bf16", ir.f32: "f32", ir.f64: "f64"}


@SIMT_RULES.register(AtomicRmwOp)
def _rmw(ctx: SimtContext, op: AtomicRmwOp) -> None:
    kind = op.kind_name()
    element = element_type(op.value.type)
    number = _FLOATS[element] if kind == "fadd" else ""
    access = _access(op, "add" if kind == "fadd" else kind, element, number)
    _act(ctx, op, access, op.ptr, [op.value], op.mask)


@SIMT_RULES.register(AtomicCasOp)
def _compare_and_swap(ctx: SimtContext, op: AtomicCasOp) -> None:
    access = _access(op, "cas", element_type(op.value.type))
    _act(ctx, op, access, op.ptr, [op.compare, op.value], None)


@SIMT_RULES.register(AtomicLoadOp)
def _load(ctx: SimtContext, op: AtomicLoadOp) -> None:
    access = _access(op, "load", element_type(op.result.type))
    _act(ctx, op, access, op.ptr, [], op.mask)


@SIMT_RULES.register(AtomicStoreOp)
def _store(ctx: SimtContext, op: AtomicStoreOp) -> None:
    access = _access(op, "store", element_type(op.value.type))
    _act(ctx, op, access, op.ptr, [op.value], op.mask)


def _access(op: AtomicOp, kind: str, element: Attribute, number: str = "") -> AtomicAccess:
    atomic = op.atomic()
    returns = bool(op.results) and is_result_used(op)
    return AtomicAccess(kind, storage_bits(element), number, atomic.order, atomic.scope, returns)


def _act(
    ctx: SimtContext,
    op: AtomicOp,
    access: AtomicAccess,
    pointer: SSAValue,
    operands: Sequence[SSAValue],
    mask: SSAValue | None,
) -> None:
    """Do the access of every element once, in order with the program's other accesses."""
    fn = ctx.fn
    if waits_before(op):
        ctx.scope.barrier()
    old = _access_all(ctx, op, access, pointer, operands, mask)
    if access.returns:
        element = element_type(op.results[0].type)
        values = [from_bits(fn, element, word) for word in old]
        ctx.define_tile(op.results[0], _handed_on(ctx, op, element, values))
    elif op.results:
        ctx.define_tile(op.results[0], ["poison"] * len(old))
    if waits_after(op) and plan_broadcast(op) is None:
        ctx.scope.barrier()


def _access_all(
    ctx: SimtContext,
    op: AtomicOp,
    access: AtomicAccess,
    pointer: SSAValue,
    operands: Sequence[SSAValue],
    mask: SSAValue | None,
) -> list[str]:
    """The old values as integers, 0 where nothing was read."""
    fn = ctx.fn
    pointers = ctx.registers(pointer)
    masks = None if mask is None else ctx.registers(mask)
    own = owns_elements(ctx, pointer)
    rows = [
        [to_bits(fn, element_type(value.type), name) for name in ctx.registers(value)]
        for value in operands
    ]
    chosen = _first_of_copies(pointer)
    width = ctx.target.atomic_width(access, vector_elems(op)) if len(chosen) > 1 else 1
    each = access
    if len(chosen) > width and access.order != "relaxed":
        # One fence is cheaper than the order of every access.
        each = access.relaxed()
        if access.releases:
            ctx.target.fence(fn, access.scope)
    found: dict[int, str] = {}
    for start in range(0, len(pointers), width):
        place = chosen[start]
        if place != start:
            continue
        predicate = both(ctx, own, None if masks is None else masks[start])
        words = [row[start : start + width] for row in rows]
        old = ctx.target.atomic(fn, each, pointers[start], words, width, predicate)
        found.update(zip(range(start, start + width), old, strict=False))
    if each is not access and access.acquires:
        ctx.target.fence(fn, access.scope)
    return [found.get(place, "0") for place in chosen]


def _first_of_copies(pointer: SSAValue) -> list[int]:
    """For each register the first one that holds the same element."""
    if not has_layout(pointer.type):
        return [0]
    first: dict[int, int] = {}
    unique = layout_of(pointer.type).unique_registers()
    return [first.setdefault(place, register) for register, place in enumerate(unique)]


def _handed_on(
    ctx: SimtContext, op: AtomicOp, element: Attribute, values: Sequence[str]
) -> list[str]:
    """Old values in every thread that holds a copy of the element."""
    slots = plan_broadcast(op)
    if slots is None:
        lanes = layout_of(op.results[0].type).free_bits("lane")
        return _from_lanes(ctx, element, values, lanes) if lanes else list(values)
    if ctx.scope.warps == 1:
        lanes = ctx.target.lanes - 1
        if has_layout(op.results[0].type):
            lanes = layout_of(op.results[0].type).free_bits("lane")
        moved = _from_lanes(ctx, element, values, lanes)
        ctx.scope.barrier()
        return moved
    offset = scratch_offset(op)
    with only_where(ctx, owns_elements(ctx, op.results[0])):
        write_slots(ctx, element, slots, offset, values)
    ctx.scope.barrier()
    return [row[0] for row in read_slots(ctx, element, slots, offset)]


def _from_lanes(
    ctx: SimtContext, element: Attribute, values: Sequence[str], free: int
) -> list[str]:
    """The values of the lane that acted for this one's copies."""
    fn = ctx.fn
    lane = fn.prologue_value(f"and i32 {ctx.index.lane}, {(ctx.target.lanes - 1) & ~free}")
    return move_registers_by(
        ctx, element, values, lambda word: ctx.target.shuffle_index(fn, word, lane)
    )
