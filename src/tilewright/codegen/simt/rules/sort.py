"""Sorts: comparisons between registers, between lanes by shuffles, between warps by memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i32, i64

from tilewright.codegen.simt.combine import Value, exchange_lanes
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.rules.structure import add_offset, coordinate
from tilewright.codegen.simt.shared import load_shared, store_shared
from tilewright.codegen.simt.slots import is_zero
from tilewright.codegen.simt.sort_in_memory import sort_in_memory
from tilewright.codegen.simt.sort_keys import KeyCodec
from tilewright.ops.indexing.ir import SortOp
from tilewright.schedule.scratch import scratch_offset
from tilewright.schedule.sorts import SortPlan, SortStep, plan_sort
from tilewright.support.dataclass import dataclass

# By line and position, the latter without the bits of lanes and warps.
Elements = Mapping[tuple[int, int], Value]
_TYPES = {32: i32, 64: i64}


@SIMT_RULES.register(SortOp)
def _sort(ctx: SimtContext, op: SortOp) -> None:
    plan = plan_sort(op)
    codec = KeyCodec(ctx, plan.element, plan.keys, op.descending is not None)
    offset = scratch_offset(op) if plan.scratch_bytes else 0
    base = coordinate(ctx, plan.layout, plan.spread.axis)
    values = [
        codec.encode(name, add_offset(ctx, base, at))
        for name, at in zip(ctx.registers(op.src), plan.spread.positions, strict=True)
    ]
    if plan.is_in_memory:
        values = sort_in_memory(ctx, plan, codec, offset, values)
    else:
        values = _sort_by_network(_Network(ctx, plan, codec, offset), values)
    decoded = [codec.decode(value) for value in values]
    ctx.define_tile(op.result, [element for element, _ in decoded])
    ctx.define_tile(op.indices, [position for _, position in decoded])


def _sort_by_network(network: _Network, values: Sequence[Value]) -> list[Value]:
    """The registers of a tile sorted, as words of the codec."""
    spread = network.plan.spread
    elements: Elements = {
        (line, spread.positions[register]): values[register]
        for line, group in enumerate(spread.groups)
        for register in group
    }
    for number, step in enumerate(network.plan.steps):
        elements = network.compare(elements, step, number)
    rows = zip(spread.lines, spread.positions, strict=True)
    return [elements[row] for row in rows]


@dataclass(frozen=True)
class _Network:
    ctx: SimtContext
    plan: SortPlan
    codec: KeyCodec
    offset: int

    def compare(self, elements: Elements, step: SortStep, number: int) -> Elements:
        """The elements after one comparison of each with its partner."""
        in_threads = self.plan.lane_steps | self.plan.warp_steps
        if not step.mask & in_threads:
            return self._compare_registers(elements, step)
        flipped = step.mask & ~in_threads
        partners = {(line, at): elements[line, at ^ flipped] for line, at in elements}
        if step.mask & self.plan.warp_steps:
            others = self._from_warps(partners, step, number)
        else:
            others = self._from_lanes(partners, step)
        return self._keep(elements, others, step)

    def _compare_registers(self, elements: Elements, step: SortStep) -> Elements:
        result = dict(elements)
        for line, at in elements:
            if at & step.top:
                continue
            first, second = elements[line, at], elements[line, at ^ step.mask]
            is_ordered = self.codec.is_less(first, second)
            result[line, at] = self.codec.choose(is_ordered, first, second)
            result[line, at ^ step.mask] = self.codec.choose(is_ordered, second, first)
        return result

    def _from_lanes(self, values: Elements, step: SortStep) -> Elements:
        mask = sum(1 << b.index for b in self.plan.spread.lanes if b.step & step.mask)
        types = [_TYPES[bits] for bits in self.plan.keys.word_bits]
        moved = exchange_lanes(self.ctx, types, list(values.values()), mask)
        return dict(zip(values, moved, strict=True))

    def _from_warps(self, values: Elements, step: SortStep, number: int) -> Elements:
        """What the partners' threads hold, through shared memory: a row of threads a register."""
        ctx, fn = self.ctx, self.ctx.fn
        if number > self._first_warp_step():
            ctx.scope.barrier()
        rows = list(self._words())
        for (start, bits, base, _), names in zip(
            rows, zip(*values.values(), strict=True), strict=True
        ):
            for register, name in enumerate(names):
                place = ctx.scope.shared_byte(start + register * self._row_bytes(bits), base)
                store_shared(fn, place, [name], bits)
        ctx.scope.barrier()
        columns: list[list[str]] = []
        for start, bits, base, unit in rows:
            there = fn.value(f"xor i32 {base}, {self._thread_mask(step) * unit}")
            columns.append(
                [
                    load_shared(
                        fn, ctx.scope.shared_byte(start + r * self._row_bytes(bits), there), 1, bits
                    )[0]
                    for r in range(len(values))
                ]
            )
        return dict(zip(values, zip(*columns, strict=True), strict=True))

    def _words(self) -> list[tuple[int, int, str, int]]:
        """For each word: where its rows begin, its bits, the thread's byte in a row, its bytes."""
        found: list[tuple[int, int, str, int]] = []
        start = self.offset
        layout = self.plan.layout
        lane_bits = len(layout.basis_images("lane"))
        for bits in self.plan.keys.word_bits:
            unit = bits // 8
            lanes = [unit << bit for bit in range(lane_bits)]
            warps = [unit << (lane_bits + bit) for bit in range(len(layout.basis_images("warp")))]
            found.append((start, bits, self.ctx.index.linear(self.ctx.fn, lanes, warps), unit))
            start += self._row_bytes(bits) * self.plan.num_registers
        return found

    def _row_bytes(self, bits: int) -> int:
        return bits // 8 * self.plan.layout.num_lanes * self.plan.layout.num_warps

    def _thread_mask(self, step: SortStep) -> int:
        """The bits of the thread's index in which the partner's differs."""
        lanes = sum(1 << b.index for b in self.plan.spread.lanes if b.step & step.mask)
        warps = sum(1 << b.index for b in self.plan.spread.warps if b.step & step.mask)
        return lanes + warps * self.plan.layout.num_lanes

    def _first_warp_step(self) -> int:
        return next(n for n, s in enumerate(self.plan.steps) if s.mask & self.plan.warp_steps)

    def _keep(self, elements: Elements, others: Elements, step: SortStep) -> Elements:
        """Of each pair the lesser where the position is the lesser one."""
        fn = self.ctx.fn
        is_upper = self._is_upper(step)
        result: dict[tuple[int, int], Value] = {}
        for (line, at), mine in elements.items():
            other = others[line, at]
            is_less = self.codec.is_less(mine, other)
            if is_upper is not None:
                keeps = fn.value(f"xor i1 {is_less}, {is_upper}")
                result[line, at] = self.codec.choose(keeps, mine, other)
            elif at & step.top:
                result[line, at] = self.codec.choose(is_less, other, mine)
            else:
                result[line, at] = self.codec.choose(is_less, mine, other)
        return result

    def _is_upper(self, step: SortStep) -> str | None:
        """Whether this thread's positions are the greater ones, i1; None: registers differ."""
        lanes = sum(1 << b.index for b in self.plan.spread.lanes if b.step == step.top)
        warps = sum(1 << b.index for b in self.plan.spread.warps if b.step == step.top)
        is_lower = is_zero(self.ctx, lanes, warps)
        if is_lower is None:
            return None
        return self.ctx.fn.prologue_value(f"xor i1 {is_lower}, true")
