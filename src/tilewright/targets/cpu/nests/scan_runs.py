"""Scans along a row of scalars: the runs of several places side by side, then what precedes them.

    for every group of 8 runs of 64:  prefix[r][j] = prefix[r][j - 1] ⊕ element     8 chains at once
                                      carry[r]     = carry[r - 1] ⊕ prefix[r - 1][63]
                                      result[r]    = carry[r] ⊕ prefix[r]           by vectors

The order is that of `scans.py`, to the bit. A chain alone waits for each of its additions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from xdsl.ir import SSAValue

from tilewright.ir.types import element_of, f32, f64, vector_of, width_bits
from tilewright.ops.reduction.ir import SCAN_RUN, ScanOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.nests import combining, masks
from tilewright.targets.cpu.nests.coordinates import Coord, Coords, combine, loop_coord
from tilewright.targets.cpu.nests.lane_loops import Nest
from tilewright.targets.cpu.nests.loop_order import can_vectorize
from tilewright.targets.cpu.ops import LoadOp, StoreOp

Values = list[SSAValue]
Place = Callable[[Coord], Coords]
Take = Callable[[Coords], Values]

# Chains side by side: a processor starts two additions a cycle and waits four for each. Measured
# on a Zen 5, 2026-11-23, busy: rows of 1000 f32 took 0.69 µs by one chain and take 0.26.
_CHAINS = 8


@dataclass(frozen=True)
class Runs:
    """The scan of blocks of runs in one nest; `place` is where a step along the axis lies."""

    nest: Nest
    op: ScanOp
    place: Place
    take: Take
    loops: count[int]

    def fits(self, size: int) -> bool:
        """Whether a block is whole groups of runs of numbers that vectors take as they are."""
        nest = self.nest
        buffers = [nest.lowering.buffer(result) for result in self.op.results]
        types = [element_of(result.type) for result in self.op.results]
        is_plain = all(
            type_ in (f32, f64) and buffer.element == type_ and buffer.last is None
            for type_, buffer in zip(types, buffers, strict=True)
        )
        is_last = self.op.axis.value.data == len(nest.space) - 1
        is_row = nest.lane_dim is None and is_last and is_plain
        return is_row and size % (_CHAINS * SCAN_RUN) == 0 and can_vectorize(nest.roots[0])

    def scan(self, first: Coord, size: int, carry: Values | None) -> Values:
        """Scan `size` elements from `first`, behind `carry`; their own total."""
        length = _CHAINS * SCAN_RUN
        total = self._group(first, carry, None)
        if size == length:
            return total
        emit, loop = self.nest.ev.emit, next(self.loops)
        variable, before = emit.open_loop([value.type for value in total])
        self.nest.ev.variables[loop] = variable
        start = combine([(first, 1), (loop_coord(loop), length)])
        following = self._group(start, carry, before)
        return list(emit.close_loop((1, size // length, 1), total, following))

    def _group(self, first: Coord, carry: Values | None, before: Values | None) -> Values:
        """Scan some runs; the total of the block up to their end."""
        starts = [combine([(first, 1), (Coord((), run * SCAN_RUN), 1)]) for run in range(_CHAINS)]
        addends: list[Values | None] = []
        for total in self._prefixes(starts):
            passed = carry if before is None else before
            if carry is not None and before is not None:
                passed = self._combine(carry, before)
            addends.append(passed)
            before = total if before is None else self._combine(before, total)
        self._add(starts, addends)
        assert before is not None
        return before

    def _prefixes(self, starts: Sequence[Coord]) -> list[Values]:
        """Write the prefixes within each run, as if nothing preceded it; the runs' totals."""
        emit, loop, width = self.nest.ev.emit, next(self.loops), len(self.op.results)
        chains = [self._first(start) for start in starts]
        flat = [value for chain in chains for value in chain]
        variable, carried = emit.open_loop([value.type for value in flat])
        self.nest.ev.variables[loop] = variable
        found: Values = []
        for index, start in enumerate(starts):
            at = combine([(start, 1), (loop_coord(loop), 1)])
            chain = carried[index * width : (index + 1) * width]
            chain = self._combine(chain, self.take(self.place(at)))
            self._write(at, chain)
            found += chain
        totals = list(emit.close_loop((1, SCAN_RUN, 1), flat, found))
        return [totals[at : at + width] for at in range(0, len(totals), width)]

    def _first(self, start: Coord) -> Values:
        values = self.take(self.place(start))
        self._write(start, values)
        return values

    def _write(self, step: Coord, values: Values) -> None:
        for result, value in zip(self.op.results, values, strict=True):
            self.nest.ev.write_buffer(self.nest.lowering.buffer(result), self.place(step), value)

    def _add(self, starts: Sequence[Coord], addends: Sequence[Values | None]) -> None:
        """Put what precedes each run before its prefixes, a vector at a time."""
        ev, emit, loop = self.nest.ev, self.nest.ev.emit, next(self.loops)
        widest = max(width_bits(result.type) for result in self.op.results)
        lanes = min(SCAN_RUN, ev.lowering.machine.vector_bytes * 8 // widest)
        variable, _ = emit.open_loop()
        ev.variables[loop] = variable
        for start, addend in zip(starts, addends, strict=True):
            if addend is not None:
                at = combine([(start, 1), (loop_coord(loop), 1)])
                self._add_vector(at, lanes, addend)
        emit.close_loop((0, SCAN_RUN, lanes))

    def _add_vector(self, step: Coord, lanes: int, addend: Values) -> None:
        """`addend` before the prefixes of `lanes` steps; from the end, the last one lies first."""
        ev, emit = self.nest.ev, self.nest.ev.emit
        ahead = lanes - 1 if self.op.is_reverse() else 0
        place = self.place(combine([(step, 1), (Coord((), ahead), 1)]))
        pointers = [ev.buffer_pointer(ev.lowering.buffer(r), place) for r in self.op.results]
        kinds = [vector_of(element_of(result.type), lanes) for result in self.op.results]
        prefixes: Values = [
            emit.effect(LoadOp, (pointer,), (kind,), masks.NO_MASK).results[0]
            for pointer, kind in zip(pointers, kinds, strict=True)
        ]
        wide = [emit.splat(value, lanes) for value in addend]
        for pointer, value in zip(pointers, self._combine(wide, prefixes), strict=True):
            emit.effect(StoreOp, (pointer, value))

    def _combine(self, left: Values, right: Values) -> Values:
        return combining.apply_combine(self.nest.ev.emit, self.op, left, right)
