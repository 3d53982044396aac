"""Matrix products: wgmma, mma.sync, and multiply-add by threads."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from tilewright.codegen.llvm_types import constant_text
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.shared import shared_pointer
from tilewright.codegen.simt.words import pack, unpack
from tilewright.ir import types as ir
from tilewright.ir.encoding import SharedType, layout_of
from tilewright.ir.plans import REGISTERS, SHARED
from tilewright.layout.linear import LinearLayout
from tilewright.ops.staging import DotWaitOp, LaidOutDotOp
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp, FenceGlobalOp
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.nvidia.rules.fma import emit_fma_product
from tilewright.targets.nvidia.rules.mma import accumulator_type, emit_mma_product, ptx_type
from tilewright.targets.nvidia.wgmma import (
    SharedOperand,
    WgmmaShape,
    advanced,
    descriptor_base,
    emit_commit,
    emit_fence,
    emit_wait,
    emit_wgmma,
)


@NVIDIA_RULES.register(FenceAsyncSharedOp)
def _fence(ctx: SimtContext, op: FenceAsyncSharedOp) -> None:
    ctx.fn.emit("call void @llvm.nvvm.fence.proxy.async.shared_cta()")


@NVIDIA_RULES.register(FenceGlobalOp)
def _fence_global(ctx: SimtContext, op: FenceGlobalOp) -> None:
    ctx.fn.emit("fence acq_rel")
    ctx.fn.emit("call void @llvm.nvvm.fence.proxy.async()")


@NVIDIA_RULES.register(LaidOutDotOp)
def _dot(ctx: SimtContext, op: LaidOutDotOp) -> None:
    emit = {"wgmma": _wgmma_product, "mma": emit_mma_product, "fma": emit_fma_product}
    emit[op.product.data.instruction](ctx, op)


@NVIDIA_RULES.register(DotWaitOp)
def _dot_wait(ctx: SimtContext, op: DotWaitOp) -> None:
    flat = [(kind, name) for v in op.tiles for kind, name in _parts(ctx, v)]
    names = emit_wait(ctx.fn, op.pending.value.data, flat)
    position = 0
    for source, result in zip(op.tiles, op.results, strict=True):
        count = len(ctx.parts(source))
        ctx.define_parts(result, names[position : position + count])
        position += count


def _parts(ctx: SimtContext, value: SSAValue) -> list[tuple[str, str]]:
    return list(zip(ctx.part_types(value.type), ctx.parts(value), strict=True))


def _wgmma_product(ctx: SimtContext, op: LaidOutDotOp) -> None:
    product = _WgmmaProduct(ctx, op)
    product.emit()


class _WgmmaProduct:
    """One product by wgmma: instructions over row blocks, column blocks and depth."""

    def __init__(self, ctx: SimtContext, op: LaidOutDotOp) -> None:
        self.ctx, self.fn, self.op = ctx, ctx.fn, op
        self.plan = plan = op.product.data
        a, b = _element(op.a.type), _element(op.b.type)
        accumulator = element_type(op.result.type)
        kind = accumulator_type(accumulator)
        self.shape = WgmmaShape(plan.columns, plan.depth, kind, ptx_type(a), ptx_type(b))
        self.extents = ir.shape_of(op.result.type)
        self.fragments: dict[tuple[int, int], list[str]] = {}
        self.layout = layout_of(op.result.type)
        self.where = {at: r for r, at in reversed(list(enumerate(self.layout.register_offsets())))}

    def emit(self) -> None:
        """Emit the whole product and, unless it is async, the wait for it."""
        op = self.op
        names = list(self.ctx.registers(op.c))
        element = element_type(op.c.type)
        accumulates = set(names) != {constant_text(0, element)}
        blocks = self._blocks()
        own = [
            self._words(element, [names[index] for index in self._indices(block)])
            for block in blocks
        ]
        own = self._fence(own if accumulates else [], blocks) or own
        words: list[str] = []
        for block, registers in zip(blocks, own, strict=True):
            words += self._emit_block(block, registers, accumulates)
        emit_commit(self.fn)
        if op.is_async is None:
            words = emit_wait(self.fn, 0, [(self.shape.register_kind, word) for word in words])
        values = self._elements(element, words)
        order = [index for block in blocks for index in self._indices(block)]
        for index, value in zip(order, values, strict=True):
            names[index] = value
        self.ctx.define_tile(op.result, names)

    def _fence(
        self, accumulators: Sequence[Sequence[str]], blocks: Sequence[tuple[int, int]]
    ) -> list[list[str]]:
        """Fence the accumulators, whose new names come back, and the fragments of A."""
        kind = self.shape.register_kind
        flat = [(kind, name) for group in accumulators for name in group]
        keys: list[tuple[int, int]] = []
        if self.plan.a == REGISTERS:
            depth = _extents(self.op.a.type)[1]
            rows = dict.fromkeys(row for row, _ in blocks)
            keys = [(row, k) for row in rows for k in range(0, depth, self.shape.depth)]
        made = [self._fragment(*key) for key in keys]
        fenced = emit_fence(self.fn, flat + [("i32", word) for group in made for word in group])
        count, position = len(flat), len(flat)
        for key, group in zip(keys, made, strict=True):
            self.fragments[key] = fenced[position : position + len(group)]
            position += len(group)
        size = count // max(1, len(accumulators))
        return [fenced[start : start + size] for start in range(0, count, size)] if size else []

    def _words(self, element: Attribute, values: Sequence[str]) -> list[str]:
        """Accumulators as the instruction has them: two f16 to a register."""
        return pack(self.fn, element, values, 32) if element == ir.f16 else list(values)

    def _elements(self, element: Attribute, words: Sequence[str]) -> list[str]:
        return unpack(self.fn, element, words, 32) if element == ir.f16 else list(words)

    def _blocks(self) -> list[tuple[int, int]]:
        """The first row and column of each instruction of the first warp group."""
        rows, columns = self.extents
        down = 16 * self.plan.warps[0]
        across = self.shape.columns * self.plan.warps[1]
        return [(r, c) for r in range(0, rows, down) for c in range(0, columns, across)]

    def _indices(self, block: tuple[int, int]) -> list[int]:
        """The registers of one instruction, in its order: pairs, rows 8 apart, columns."""
        row, column = block
        return [
            self.where[row + 8 * half, column + 8 * group + pair]
            for group in range(self.shape.columns // 8)
            for half in (0, 1)
            for pair in (0, 1)
        ]

    def _emit_block(self, block: tuple[int, int], own: list[str], accumulates: bool) -> list[str]:
        """The instructions over K of one block of the result; its accumulators' new names."""
        row, column = block
        a_operand = self._shared_operand(self.op.a, 1) if self.plan.a == SHARED else None
        b_operand = self._shared_operand(self.op.b, 0)
        b_base = self._descriptor(self.op.b, b_operand, self._group(1), self.shape.columns)
        a_base = None
        if a_operand is not None:
            a_base = self._descriptor(self.op.a, a_operand, self._group(0), self.plan.shape[0])
        depth = _extents(self.op.a.type)[1]
        for k in range(0, depth, self.shape.depth):
            b = advanced(self.fn, b_base, b_operand.offset(column, k))
            if a_operand is not None and a_base is not None:
                a: str | list[str] = advanced(self.fn, a_base, a_operand.offset(row, k))
                transposes = (a_operand.is_transposed, b_operand.is_transposed)
            else:
                a = self.fragments[row, k]
                transposes = (False, b_operand.is_transposed)
            own = emit_wgmma(self.fn, self.shape, own, a, b, accumulates or k > 0, transposes)
        return own

    def _group(self, dim: int) -> str:
        """The index of the thread's warp group along a dim, i32."""
        down, across = self.plan.warps
        bits = (down * across).bit_length() - 1
        split = down.bit_length() - 1
        bases = [0] * bits
        for bit in range(bits):
            if dim == 0 and 2 <= bit < split:
                bases[bit] = 1 << (bit - 2)
            if dim == 1 and bit >= split:
                bases[bit] = 1 << (bit - split)
        return self.ctx.index.uniform(self.fn, bases)

    def _shared_operand(self, value: SSAValue, k_dim: int) -> SharedOperand:
        assert isinstance(value.type, SharedType)
        return shared_operand(value.type, k_dim)

    def _descriptor(self, value: SSAValue, operand: SharedOperand, group: str, outer: int) -> str:
        """The descriptor of what the thread's warp group reads first."""
        start = self.ctx.value(value)
        if group != "0":
            step = operand.offset(outer, 0)
            moved = self.fn.value(f"mul i32 {group}, {step}")
            start = moved if start == "0" else self.fn.value(f"add i32 {start}, {moved}")
        pointer = shared_pointer(self.fn, start)
        address = self.fn.value(f"ptrtoint ptr addrspace(3) {pointer} to i32")
        return descriptor_base(self.fn, address, operand)

    def _fragment(self, row: int, k: int) -> list[str]:
        """The four registers of A of one instruction."""
        layout = layout_of(self.op.a.type)
        names = self.ctx.registers(self.op.a)
        element = element_type(self.op.a.type)
        return operand_fragment(self.ctx, layout, names, element, row, k)


def operand_fragment(
    ctx: SimtContext,
    layout: LinearLayout,
    names: Sequence[str],
    element: Attribute,
    row: int,
    k: int,
) -> list[str]:
    """The four i32 of operand A of a 16-row instruction: rows 8 apart, then 16 bytes of K."""
    where = {at: r for r, at in reversed(list(enumerate(layout.register_offsets())))}
    packed = 32 // ir.width_bits(element)
    fragment = []
    for half in (0, 1):
        for below in (0, 1):
            at = [(row + 8 * below, k + 4 * packed * half + i) for i in range(packed)]
            values = [names[where[place]] for place in at]
            fragment += pack(ctx.fn, element, values, 32)
    return fragment


def shared_operand(type_: SharedType, k_dim: int) -> SharedOperand:
    """How wgmma reads a shared tile: from the images of its offsets."""
    layout, size = layout_of(type_), max(1, ir.width_bits(type_.element) // 8)
    bases = layout.basis_images("offset")
    fast = next(dim for dim, step in enumerate(bases[0]) if step)
    span = 1
    for basis in bases:
        if basis[fast] != span or any(basis[d] for d in range(len(basis)) if d != fast):
            break
        span *= 2
    swizzle = min(128, span * size)
    # A view of a part has panels as far apart as the whole tile has.
    panel = swizzle * layout.shape[1 - fast]
    return SharedOperand(k_dim, fast, swizzle, panel, size)


def _element(type_: Attribute) -> Attribute:
    return type_.element if isinstance(type_, SharedType) else element_type(type_)


def _extents(type_: Attribute) -> tuple[int, ...]:
    return type_.extents() if isinstance(type_, SharedType) else ir.shape_of(type_)
