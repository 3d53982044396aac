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
from tilewright.ir.plans import SHARED
from tilewright.layout.linear import LinearLayout
from tilewright.machine.mma import WGMMA
from tilewright.ops.staging import DotWaitOp, LaidOutDotOp
from tilewright.support.errors import InternalError
from tilewright.support.powers_of_two import is_power_of_two
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp, FenceGlobalOp
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.nvidia.rules.fma import emit_fma_product
from tilewright.targets.nvidia.rules.mma import accumulator_type, emit_mma_product, ptx_type
from tilewright.targets.nvidia.wgmma import (
    SharedOperand,
    WgmmaChain,
    WgmmaShape,
    WgmmaStep,
    advanced,
    descriptor_base,
    emit_product,
    emit_wait,
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
        self.fragments: dict[tuple[int, int], tuple[str, ...]] = {}
        self.layout = layout_of(op.result.type)
        self.where = {at: r for r, at in reversed(list(enumerate(self.layout.register_offsets())))}
        self.a = self._shared_operand(op.a, 1) if plan.a == SHARED else None
        self.b = self._shared_operand(op.b, 0)

    def emit(self) -> None:
        """Emit the whole product and, unless it is async, the wait for it."""
        op = self.op
        names = list(self.ctx.registers(op.c))
        element = element_type(op.c.type)
        accumulates = set(names) != {constant_text(0, element)}
        blocks = self._blocks()
        words = emit_product(
            self.fn,
            self.shape,
            [self._chain(block, names) for block in blocks],
            accumulates=accumulates,
            transposes=(self.a is not None and self.a.is_transposed, self.b.is_transposed),
            waits=op.is_async is None,
        )
        values = self._elements(element, words)
        order = [index for block in blocks for index in self._indices(block)]
        for index, value in zip(order, values, strict=True):
            names[index] = value
        self.ctx.define_tile(op.result, names)

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

    def _chain(self, block: tuple[int, int], names: Sequence[str]) -> WgmmaChain:
        """The instructions over K of one block of the result, whose registers are `names`."""
        op, (row, column) = self.op, block
        registers = [names[index] for index in self._indices(block)]
        accumulators = self._words(element_type(op.c.type), registers)
        b_base = self._descriptor(op.b, self.b, 1, self.shape.columns)
        a_base = None
        if self.a is not None:
            a_base = self._descriptor(op.a, self.a, 0, self.plan.shape[0])
        steps: list[WgmmaStep] = []
        for k in range(0, _extents(op.a.type)[1], self.shape.depth):
            right = advanced(self.fn, b_base, self.b.offset(column, k))
            if self.a is not None and a_base is not None:
                left: str | tuple[str, ...] = advanced(self.fn, a_base, self.a.offset(row, k))
            else:
                left = self._fragment(row, k)
            steps.append(WgmmaStep(left, right))
        return WgmmaChain(tuple(accumulators), tuple(steps))

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

    def _descriptor(self, value: SSAValue, operand: SharedOperand, dim: int, extent: int) -> str:
        """The descriptor of what the thread's warp group reads first: `extent` along a dim."""
        start, moved = self.ctx.value(value), self._place(operand, dim, extent)
        if moved != "0":
            start = moved if start == "0" else self.fn.value(f"add i32 {start}, {moved}")
        pointer = shared_pointer(self.fn, start)
        address = self.fn.value(f"ptrtoint ptr addrspace(3) {pointer} to i32")
        return descriptor_base(self.fn, address, operand)

    def _place(self, operand: SharedOperand, dim: int, extent: int) -> str:
        """How far behind the first group's part that of the thread's group is, in bytes, i32.

        Parts lie at equal distances as long as they are in one panel, and so do panels.
        """
        group = self._group(dim)
        if group == "0":
            return "0"
        count = self.plan.warps[dim] // (WGMMA.warps if dim == 0 else 1)
        places = [operand.offset(number * extent, 0) for number in range(count)]
        inside = next((n for n in range(count) if places[n] != n * places[1]), count)
        apart = places[inside] if inside < count else 0
        expected = [n % inside * places[1] + n // inside * apart for n in range(count)]
        if places != expected or not is_power_of_two(inside):
            raise InternalError(f"{count} warp groups do not find parts of {extent} in {operand}")
        if inside == count:
            return self.fn.value(f"mul i32 {group}, {places[1]}")
        within = self.fn.value(f"and i32 {group}, {inside - 1}")
        panel = self.fn.value(f"lshr i32 {group}, {inside.bit_length() - 1}")
        terms = (f"mul i32 {within}, {places[1]}", f"mul i32 {panel}, {apart}")
        moved = [self.fn.value(term) for term in terms]
        return self.fn.value(f"add i32 {moved[0]}, {moved[1]}")

    def _fragment(self, row: int, k: int) -> tuple[str, ...]:
        """The four registers of A of one instruction, packed once."""
        if (row, k) not in self.fragments:
            layout, element = layout_of(self.op.a.type), element_type(self.op.a.type)
            names = self.ctx.registers(self.op.a)
            words = operand_fragment(self.ctx, layout, names, element, row, k)
            self.fragments[row, k] = tuple(words)
        return self.fragments[row, k]


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
