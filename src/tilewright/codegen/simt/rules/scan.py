"""Scans: prefixes within a thread, then carries from lanes and warps that stand before it.

A carry is what all elements before a run of registers combine to. It is added to the elements
once, at the end, so that a level costs one combination a run and not one an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import groupby

from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.combine import Combine, Value, combine_of, exchange_lanes
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.slots import exchange_scratch, masked
from tilewright.ops.reduction.ir import ScanOp
from tilewright.schedule.reduction_levels import ReductionLevel
from tilewright.schedule.scans import ScanPlan, plan_scan
from tilewright.schedule.scratch import scratch_offset
from tilewright.support.dataclass import dataclass


@dataclass
class _Run:
    """Registers whose prefixes lack the same carry.

    There is a carry where a bit of the thread in `lanes` and `warps` is past its start, and in
    every thread if `is_always`.
    """

    prefixes: dict[int, Value]
    carry: Value | None = None
    lanes: int = 0
    warps: int = 0
    is_always: bool = False


@dataclass
class _Block:
    """An aligned part of the axis: the runs of it that this thread holds, and its total."""

    line: int
    place: int
    total: Value
    runs: list[_Run] = field(default_factory=list)


@SIMT_RULES.register(ScanOp)
def _scan(ctx: SimtContext, op: ScanOp) -> None:
    scan = _Scan(ctx, combine_of(ctx, op), plan_scan(op))
    sources = list(zip(*(ctx.registers(value) for value in op.srcs), strict=True))
    offset = scratch_offset(op) if scan.plan.scratch_bytes else 0
    results = scan.run(sources, offset)
    for result, names in zip(op.outputs, zip(*results, strict=True), strict=True):
        ctx.define_tile(result, names)


@dataclass(frozen=True)
class _Scan:
    ctx: SimtContext
    combine: Combine
    plan: ScanPlan

    def run(self, sources: Sequence[Value], offset: int) -> list[Value]:
        """The prefixes of all registers."""
        blocks = self._join_registers(self._single(sources), self._first_step())
        for index, level in enumerate(self.plan.levels):
            if level.scratch is None:
                self._join_lanes(blocks, level.bits[0].index)
            else:
                self._join_warps(blocks, level, offset + level.offset)
            following = self.plan.levels[index + 1 :]
            blocks = self._join_registers(blocks, following[0].step if following else 0)
        found = self._finish(blocks)
        places = list(zip(self.plan.spread.lines, self.plan.spread.positions, strict=True))
        by_place = {places[register]: value for register, value in found.items()}
        return [by_place[place] for place in places]

    def _first_step(self) -> int:
        return self.plan.levels[0].step if self.plan.levels else 0

    def _single(self, sources: Sequence[Value]) -> list[_Block]:
        """Every register as a block of its own, line by line in the order of the scan."""
        blocks: list[_Block] = []
        for line, group in enumerate(self.plan.spread.groups):
            for register in sorted(group, key=self.plan.place):
                value = sources[register]
                run = _Run({register: value})
                blocks.append(_Block(line, self.plan.place(register), value, [run]))
        return blocks

    # --- within a thread ---

    def _join_registers(self, blocks: list[_Block], step: int) -> list[_Block]:
        """Blocks of a thread that are in one aligned block of `step` (0: the line) as one."""

        def key(block: _Block) -> tuple[int, int]:
            return block.line, block.place // step if step else 0

        return [self._join(list(parts)) for _, parts in groupby(blocks, key)]

    def _join(self, parts: Sequence[_Block]) -> _Block:
        joined = parts[0]
        for part in parts[1:]:
            for run in part.runs:
                if run.carry is None and len(joined.runs) == 1 and joined.runs[0].carry is None:
                    self._append(joined.runs[0], joined.total, run)
                else:
                    self._add_carry(run, joined.total)
                    joined.runs.append(run)
            total = self._total(joined, part)
            joined = _Block(joined.line, joined.place, total, joined.runs)
        return joined

    def _append(self, run: _Run, total: Value, following: _Run) -> None:
        """Take the registers of a run that nothing but this run stands before."""
        for register, prefix in following.prefixes.items():
            run.prefixes[register] = self.combine.apply(total, prefix)

    def _total(self, joined: _Block, part: _Block) -> Value:
        """The total of both; the last prefix where that is the same."""
        last = joined.runs[-1]
        if len(joined.runs) == 1 and last.carry is None:
            return list(last.prefixes.values())[-1]
        return self.combine.apply(joined.total, part.total)

    def _add_carry(self, run: _Run, before: Value) -> None:
        """What stands before a run in every thread."""
        if run.carry is None:
            run.carry = before
        else:
            both = self.combine.apply(before, run.carry)
            run.carry = both if run.is_always else self._select(self._has_carry(run), both, before)
        run.is_always = True

    # --- between threads ---

    def _join_lanes(self, blocks: Sequence[_Block], bit: int) -> None:
        """Join blocks of lanes that differ in a bit."""
        totals = [block.total for block in blocks]
        others = exchange_lanes(self.ctx, self.combine.elements, totals, 1 << bit)
        is_second = self._is_past_start(1 << bit, 0)
        for block, other in zip(blocks, others, strict=True):
            for run in block.runs:
                self._take_carry(run, other, is_second)
                run.lanes |= 1 << bit
            first, second = block.total, other
            if not self.combine.is_commutative:
                first = self._select(is_second, other, block.total)
                second = self._select(is_second, block.total, other)
            block.total = self.combine.apply(first, second)

    def _join_warps(self, blocks: Sequence[_Block], level: ReductionLevel, offset: int) -> None:
        """Join blocks of warps that differ in the bits of a level, through shared memory."""
        assert level.scratch is not None
        totals = [block.total for block in blocks]
        rows = exchange_scratch(self.ctx, self.combine.elements, level.scratch, offset, totals)
        mask = sum(1 << bit.index for bit in level.bits)
        is_later = self._is_past_start(0, mask)
        for block, row in zip(blocks, rows, strict=True):
            before, block.total = self._before(level, row[::-1] if self.plan.is_reverse else row)
            for run in block.runs:
                self._take_carry(run, before, is_later)
                run.warps |= mask

    def _before(self, level: ReductionLevel, row: Sequence[Value]) -> tuple[Value, Value]:
        """What the warps before this one combine to (any value in the first), and all of them."""
        running = before = row[0]
        for place, value in enumerate(row[1:-1], 1):
            running = self.combine.apply(running, value)
            before = self._select(self._is_after(level, place), running, before)
        return before, self.combine.apply(running, row[-1])

    def _is_after(self, level: ReductionLevel, place: int) -> str:
        """Whether this warp stands behind place `place` among those of a level."""
        bases = [0] * len(self.plan.layout.basis_images("warp"))
        for number, bit in enumerate(level.bits):
            bases[bit.index] = 1 << number
        index = self.ctx.index.linear(self.ctx.fn, (), bases)
        if self.plan.is_reverse:
            last = (1 << len(level.bits)) - 1
            return self.ctx.fn.prologue_value(f"icmp ult i32 {index}, {last - place}")
        return self.ctx.fn.prologue_value(f"icmp ugt i32 {index}, {place}")

    def _take_carry(self, run: _Run, before: Value, condition: str) -> None:
        """What stands before a run where `condition` holds, in front of its carry."""
        if run.carry is None:
            run.carry = before
            return
        both = self.combine.apply(before, run.carry)
        if not run.is_always:
            both = self._select(self._has_carry(run), both, before)
        run.carry = self._select(condition, both, run.carry)

    def _finish(self, blocks: Sequence[_Block]) -> dict[int, Value]:
        """The prefixes of registers, with their carries."""
        found: dict[int, Value] = {}
        for run in (run for block in blocks for run in block.runs):
            for register, prefix in run.prefixes.items():
                value = prefix
                if run.carry is not None:
                    value = self.combine.apply(run.carry, prefix)
                    if not run.is_always:
                        value = self._select(self._has_carry(run), value, prefix)
                found[register] = value
        return found

    # --- conditions ---

    def _has_carry(self, run: _Run) -> str:
        return self._is_past_start(run.lanes, run.warps)

    def _is_past_start(self, lanes: int, warps: int) -> str:
        """Whether any of these bits of the thread is past its start in the order of the scan."""
        fn = self.ctx.fn
        if not self.plan.is_reverse:
            return fn.prologue_value(f"icmp ne i32 {masked(self.ctx, lanes, warps)}, 0")
        terms = [
            fn.prologue_value(f"icmp ne i32 {masked(self.ctx, *masks)}, {masks[0] | masks[1]}")
            for masks in ((lanes, 0), (0, warps))
            if masks != (0, 0)
        ]
        return terms[0] if len(terms) == 1 else fn.prologue_value(f"or i1 {terms[0]}, {terms[1]}")

    def _select(self, condition: str, then: Value, otherwise: Value) -> Value:
        fn = self.ctx.fn
        return tuple(
            fn.value(f"select i1 {condition}, {kind} {a}, {kind} {b}")
            for kind, a, b in zip(
                map(llvm_type, self.combine.elements), then, otherwise, strict=True
            )
        )
