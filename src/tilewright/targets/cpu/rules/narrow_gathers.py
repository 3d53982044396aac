"""Masked gathers of elements that no instruction gathers: a loop over the lanes.

LLVM writes such a gather as a branch, a load and an insertion for each lane. For 64 lanes of bf16
that is as much code as the rest of a product's program, for indices that wrap: code that hardly
ever runs, and a quarter of what the kernel takes to compile.
"""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import lanes_of, llvm_type
from tilewright.ir import types as ir
from tilewright.targets.cpu.dot.vectors import counted_loop

# By definition: the gathers of AVX2, AVX-512 and SVE take elements of 32 or 64 bits.
LEAST_GATHERED_BYTES = 4


def gathers_by_lanes(stored: Attribute) -> bool:
    """Whether a masked gather of a vector type is a loop: that of narrow elements."""
    return ir.storage_bytes(ir.element_of(stored)) < LEAST_GATHERED_BYTES


def gather_by_lanes(
    ctx: EmitContext, stored: Attribute, place: tuple[str, SSAValue], mask: SSAValue, filler: str
) -> str:
    """A vector of type `stored` whose lanes are loaded one by one where `mask` is set.

    `place`: the pointer and the offsets in elements behind it; or "" and a vector of pointers.
    Lanes that are masked off are those of `filler`. They read their own lane of it once more and
    not behind a branch, so that no pattern of a mask is slower than another.
    """
    fn, (base, offsets) = ctx.fn, place
    lanes, element = lanes_of(stored), llvm_type(ir.element_of(stored))
    assert lanes is not None and isinstance(offsets.type, VectorType)
    index, align = llvm_type(offsets.type.element_type), ir.storage_bytes(ir.element_of(stored))
    indices, masks, values = (
        fn.prologue_value(f"alloca <{lanes} x {kind}>, align 64") for kind in (index, "i8", element)
    )
    wide = fn.value(f"zext {ctx.typed(mask)} to <{lanes} x i8>")
    fn.emit(f"store {ctx.typed(offsets)}, ptr {indices}, align 64")
    fn.emit(f"store <{lanes} x i8> {wide}, ptr {masks}, align 64")
    fn.emit(f"store <{lanes} x {element}> {filler}, ptr {values}, align 64")

    def load_lane(lane: str) -> None:
        found = _lane(ctx, index, indices, lane)
        if base:
            found = fn.value(f"getelementptr {element}, ptr {base}, {index} {found}")
        is_read = fn.value(f"icmp ne i8 {_lane(ctx, 'i8', masks, lane)}, 0")
        own = fn.value(f"getelementptr {element}, ptr {values}, i64 {lane}")
        source = fn.value(f"select i1 {is_read}, ptr {found}, ptr {own}")
        loaded = fn.value(f"load {element}, ptr {source}, align {align}")
        fn.emit(f"store {element} {loaded}, ptr {own}, align {align}")

    counted_loop(fn, lanes, load_lane)
    return fn.value(f"load <{lanes} x {element}>, ptr {values}, align 64")


def _lane(ctx: EmitContext, kind: str, vector: str, lane: str) -> str:
    """One lane of a vector in memory."""
    place = ctx.fn.value(f"getelementptr {kind}, ptr {vector}, i64 {lane}")
    return ctx.fn.value(f"load {kind}, ptr {place}")
