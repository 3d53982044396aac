"""Emits the loops of a scan: runs within runs, so that rounding errors do not grow with length.

    for every block of 64² elements:          carry₂: what stands before the block
        for every run of 64 in it:            carry₁ = carry₂ ⊕ totals of the runs before
            for every element of the run:     result = carry₁ ⊕ prefix within the run

The prefixes of neighbouring runs do not depend on each other, so the processor overlaps them,
where one running sum would wait for every addition. A function that does not round takes one run.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from xdsl.ir import SSAValue

from tilewright.ops.reduction.ir import ScanOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.nests import combining
from tilewright.targets.cpu.nests.coordinates import ORIGIN, Coord, combine, loop_coord
from tilewright.targets.cpu.nests.lane_loops import Nest
from tilewright.targets.cpu.nests.scan_runs import Runs

Values = list[SSAValue]
Take = Callable[[tuple[Coord, ...]], Values]

# By definition: loops of a scan are numbered from here: dimensions of tiles come before.
_FIRST_LOOP = 64


def emit_scan(nest: Nest, axis: int, take: Take) -> None:
    """The loops along `axis`; `take` evaluates the elements to scan at an index."""
    op = nest.roots[0].op
    assert isinstance(op, ScanOp)
    scan = _Scan(nest, op, axis, take, count(_FIRST_LOOP))
    sizes = op.block_sizes()
    scan.block(ORIGIN, nest.space[axis], sizes[:-1], None)


@dataclass(frozen=True)
class _Scan:
    nest: Nest
    op: ScanOp
    axis: int
    take: Take
    loops: count[int]

    def block(
        self, first: Coord, size: int, inner: tuple[int, ...], carry: Values | None
    ) -> Values:
        """Scan `size` elements from `first` in blocks of the sizes `inner`; return their total."""
        runs = Runs(self.nest, self.op, self._index, self.take, self.loops)
        if len(inner) == 1 and runs.fits(size):
            return runs.scan(first, size, carry)
        part = inner[-1] if inner else 1
        total = self._part(first, min(part, size), inner, carry)
        whole, rest = divmod(size, part)
        if whole > 1:
            emit = self.nest.ev.emit
            loop = next(self.loops)
            variable, carried = emit.open_loop([value.type for value in total])
            self.nest.ev.variables[loop] = variable
            start = combine([(first, 1), (loop_coord(loop), part)])
            folded = self._following(start, part, inner, carry, carried)
            total = list(emit.close_loop((1, whole, 1), total, folded))
        if whole and rest:
            start = combine([(first, 1), (Coord((), whole * part), 1)])
            total = self._following(start, rest, inner, carry, total)
        return total

    def _following(
        self, first: Coord, size: int, inner: tuple[int, ...], carry: Values | None, before: Values
    ) -> Values:
        """Scan a part that `before` precedes within its block; return the total up to its end."""
        if not inner:
            total = self._combine(before, self._element(first))
            self._write(first, carry, total)
            return total
        passed = before if carry is None else self._combine(carry, before)
        return self._combine(before, self._part(first, size, inner, passed))

    def _part(
        self, first: Coord, size: int, inner: tuple[int, ...], carry: Values | None
    ) -> Values:
        """Scan one part of a block, as if nothing of the block stood before; return its total."""
        if inner:
            return self.block(first, size, inner[:-1], carry)
        value = self._element(first)
        self._write(first, carry, value)
        return value

    def _index(self, step: Coord) -> tuple[Coord, ...]:
        coords = list(self.nest.coords())
        if self.op.is_reverse():
            step = combine([(Coord((), self.nest.space[self.axis] - 1), 1), (step, -1)])
        coords[self.axis] = step
        return tuple(coords)

    def _element(self, step: Coord) -> Values:
        return self.take(self._index(step))

    def _write(self, step: Coord, carry: Values | None, prefix: Values) -> None:
        results = prefix if carry is None else self._combine(carry, prefix)
        for result, value in zip(self.op.results, results, strict=True):
            buffer = self.nest.lowering.buffer(result)
            self.nest.ev.write_buffer(buffer, self._index(step), value)

    def _combine(self, left: Values, right: Values) -> Values:
        return combining.apply_combine(self.nest.ev.emit, self.op, left, right)
