"""Global memory: loads and stores as wide as the schedule found them to be.

The plan of an access (`tw.access`) says how many registers in a row are adjacent in memory,
aligned as a whole, and share their mask.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from tilewright.codegen.llvm_types import constant_text
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.services import GlobalAccess
from tilewright.codegen.simt.words import pack, unpack, word_bits_of
from tilewright.ir import types as ir
from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ir.plans import vector_elems
from tilewright.ir.schedule_attributes import COMMON
from tilewright.layout.linear import LinearLayout
from tilewright.ops.memory.ir import CACHE_MODIFIERS, EVICTION_POLICIES, LoadOp, StoreOp


def access_of(op: LoadOp | StoreOp) -> GlobalAccess:
    """The hints of an access."""
    cache = 0 if op.cache is None else op.cache.value.data
    evict = 0 if op.evict is None else op.evict.value.data
    modifier = CACHE_MODIFIERS[cache]
    is_volatile = isinstance(op, LoadOp) and _is_set(op.is_volatile)
    return GlobalAccess(
        "" if modifier == "none" else modifier.lstrip("."),
        EVICTION_POLICIES[evict] if evict > 1 else "",
        is_volatile,
    )


def _is_set(flag: object) -> bool:
    return flag is not None and not (isinstance(flag, IntegerAttr) and flag.value.data == 0)


# By definition: of a register, which lanes exchange.
_WORD_BITS = 32


@SIMT_RULES.register(LoadOp)
def _load(ctx: SimtContext, op: LoadOp) -> None:
    fn, element = ctx.fn, element_type(op.result.type)
    pointers = ctx.registers(op.ptr)
    masks = None if op.mask is None else ctx.registers(op.mask)
    others = None if op.other is None else ctx.registers(op.other)
    width, access = vector_elems(op), access_of(op)
    bits = word_bits_of(element, width)
    values: list[str] = []
    for start in range(0, len(pointers), width):
        predicate = None if masks is None else masks[start]
        if predicate == "false":
            values += _fallback(element, others, start, width)
            continue
        fallback = None
        if predicate not in (None, "true"):
            fallback = pack(fn, element, _fallback(element, others, start, width), bits)
        count = max(1, width * ir.storage_bytes(element) * 8 // bits)
        condition = None if predicate == "true" else predicate
        words = ctx.target.load_global(
            fn, pointers[start], count, bits, condition, fallback, access
        )
        if COMMON in op.attributes and not ctx.scope.partition.is_elected:
            words = [_of_warp(ctx, word, bits) for word in words]
        values += unpack(fn, element, words, bits)
    ctx.define_tile(op.result, values)


def _of_warp(ctx: SimtContext, word: str, bits: int) -> str:
    """A word that all lanes have loaded, as one that they are seen to share.

    *Why*: loops whose bounds follow from it stay uniform, and what steps in them in registers of
    the warp.
    """
    fn = ctx.fn
    if bits > _WORD_BITS:
        parts = [word, fn.value(f"lshr i{bits} {word}, {_WORD_BITS}")]
        low, high = (
            _of_warp(ctx, fn.value(f"trunc i{bits} {part} to i{_WORD_BITS}"), _WORD_BITS)
            for part in parts
        )
        low, high = (fn.value(f"zext i{_WORD_BITS} {part} to i{bits}") for part in (low, high))
        high = fn.value(f"shl i{bits} {high}, {_WORD_BITS}")
        return fn.value(f"or i{bits} {low}, {high}")
    if bits < _WORD_BITS:
        wide = ctx.target.shuffle_index(fn, fn.value(f"zext i{bits} {word} to i32"), "0")
        return fn.value(f"trunc i{_WORD_BITS} {wide} to i{bits}")
    return ctx.target.shuffle_index(fn, word, "0")


def _fallback(
    element: ir.Attribute, others: Sequence[str] | None, start: int, width: int
) -> list[str]:
    if others is not None:
        return list(others[start : start + width])
    return [constant_text(0, element)] * width


@SIMT_RULES.register(StoreOp)
def _store(ctx: SimtContext, op: StoreOp) -> None:
    fn, element = ctx.fn, element_type(op.value.type)
    pointers, values = ctx.registers(op.ptr), ctx.registers(op.value)
    masks = None if op.mask is None else ctx.registers(op.mask)
    width, access = vector_elems(op), access_of(op)
    bits = word_bits_of(element, width)
    own = owns_elements(ctx, op.value)
    for start in range(0, len(pointers), width):
        predicate = both(ctx, own, None if masks is None else masks[start])
        if predicate == "false":
            continue
        words = pack(fn, element, values[start : start + width], bits)
        ctx.target.store_global(fn, pointers[start], words, bits, predicate, access)


def owns_elements(ctx: SimtContext, value: SSAValue) -> str | None:
    """Whether this thread is the one that answers for its elements, i1; None: every thread is.

    Where lanes or warps hold copies the copy of the lowest index answers. A scalar belongs to
    thread 0.
    """
    if not has_layout(value.type):
        return is_zero(ctx, ctx.target.lanes - 1, ctx.scope.warps - 1)
    layout = layout_of(value.type)
    return is_zero(ctx, layout.free_bits("lane"), _free_warps(ctx, layout))


def _free_warps(ctx: SimtContext, layout: LinearLayout) -> int:
    covered = layout.size("warp")
    return layout.free_bits("warp") | (ctx.scope.warps - 1) & ~(covered - 1)


def is_zero(ctx: SimtContext, lane_mask: int, warp_mask: int) -> str | None:
    """Whether no bit of the masks is set in lane and warp, i1; None for empty masks."""
    fn = ctx.fn
    terms = []
    for source, mask in ((ctx.index.lane, lane_mask), (ctx.index.warp, warp_mask)):
        if mask:
            kept = fn.prologue_value(f"and i32 {source}, {mask}")
            terms.append(fn.prologue_value(f"icmp eq i32 {kept}, 0"))
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else fn.prologue_value(f"and i1 {terms[0]}, {terms[1]}")


def both(ctx: SimtContext, first: str | None, second: str | None) -> str | None:
    """Two conditions, i1 or None for none, as one."""
    if "false" in (first, second):
        return "false"
    kept = [term for term in (first, second) if term not in (None, "true")]
    if not kept:
        return None
    return kept[0] if len(kept) == 1 else ctx.fn.value(f"and i1 {kept[0]}, {kept[1]}")
