"""Matrix products by multiply-add of single threads, operands in shared memory.

For what no matrix instruction takes: float32 in full precision, float64, odd shapes, batches.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue

from tilewright.analysis.facts import MAX_ACCESS_BYTES
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.rules.structure import coordinate
from tilewright.codegen.simt.shared import load_shared
from tilewright.codegen.simt.words import storage_bits, unpack, word_bits_of
from tilewright.ir import types as ir
from tilewright.ir.encoding import SharedType, layout_of
from tilewright.ops.staging import LaidOutDotOp

Coordinates = tuple[int, ...]


def emit_fma_product(ctx: SimtContext, op: LaidOutDotOp) -> None:
    """Emit a product as a loop over K, a few of it at a time."""
    _FmaProduct(ctx, op).emit()


class _FmaProduct:
    """One product by threads: each keeps its results in registers and reads shared operands."""

    def __init__(self, ctx: SimtContext, op: LaidOutDotOp) -> None:
        self.ctx, self.fn, self.op = ctx, ctx.fn, op
        assert isinstance(op.a.type, SharedType) and isinstance(op.b.type, SharedType)
        self.a, self.b = op.a.type, op.b.type
        self.result = element_type(op.result.type)
        self.layout = layout_of(op.result.type)
        self.offsets = self.layout.register_offsets()
        self.depth = self.a.extents()[-1]
        self.wide = self._compute_type()
        self.step = max(1, min(self.depth, MAX_ACCESS_BYTES // (storage_bits(self.a.element) // 8)))

    def _compute_type(self) -> Attribute:
        if isinstance(self.result, IntegerType) or self.result == ir.f64:
            return self.result
        return ir.f32

    def emit(self) -> None:
        """Emit the loop; its accumulators are the product's registers."""
        fn, kind = self.fn, llvm_type(self.wide)
        starts = [self._widen(self.result, name) for name in self.ctx.registers(self.op.c)]
        bases = self._bases()
        entry, loop, end = fn.block, fn.new_label(), fn.new_label()
        fn.branch(loop)
        fn.place(loop)
        counter, *names = self._phis(len(starts) + 1)
        totals = self._steps(counter, names, bases)
        following = fn.value(f"add nuw nsw i32 {counter}, {self.step}")
        rows = [("i32", counter, "0", following)]
        rows += [(kind, *row) for row in zip(names, starts, totals, strict=True)]
        for line, (type_, name, start, back) in enumerate(rows, self._first_line):
            incoming = f"[ {start}, %{entry} ], [ {back}, %{loop} ]"
            fn.lines[line] = f"  {name} = phi {type_} {incoming}"
        more = fn.value(f"icmp ult i32 {following}, {self.depth}")
        fn.branch_if(more, loop, end)
        fn.place(end)
        self.ctx.define_tile(self.op.result, [self._narrow(name) for name in totals])

    def _phis(self, count: int) -> list[str]:
        self._first_line = len(self.fn.lines)
        names = []
        for _ in range(count):
            self.fn.counter += 1
            names.append(f"%v{self.fn.counter}")
            self.fn.lines.append("")
        return names

    def _bases(self) -> tuple[str, str]:
        """The byte offsets of the thread's first row of A and first column of B."""
        rank = self.layout.rank
        at = [coordinate(self.ctx, self.layout, dim) for dim in range(rank)]
        a = self._offset(self.op.a, self.a, [*at[:-1], "0"])
        b = self._offset(self.op.b, self.b, [*at[:-2], "0", at[-1]])
        return a, b

    def _offset(self, value: SSAValue, type_: SharedType, at: list[str]) -> str:
        total, stride = self.ctx.value(value), storage_bits(type_.element) // 8
        for position, extent in zip(reversed(at), reversed(type_.extents()), strict=True):
            if position != "0":
                term = self.fn.value(f"mul nuw nsw i32 {position}, {stride}")
                total = term if total == "0" else self.fn.value(f"add i32 {total}, {term}")
            stride *= extent
        return total

    def _steps(self, counter: str, names: list[str], bases: tuple[str, str]) -> list[str]:
        """One pass of the loop: `step` values of K for every result."""
        fn = self.fn
        a_size, b_size = (storage_bits(t.element) // 8 for t in (self.a, self.b))
        columns = self.b.extents()[-1]
        a_move = fn.value(f"mul nuw nsw i32 {counter}, {a_size}")
        b_move = fn.value(f"mul nuw nsw i32 {counter}, {b_size * columns}")
        a_base = fn.value(f"add i32 {bases[0]}, {a_move}")
        b_base = fn.value(f"add i32 {bases[1]}, {b_move}")
        rows = {at[:-1]: self._row(a_base, at[:-1]) for at in self.offsets}
        totals = list(names)
        for k in range(self.step):
            values = self._columns(b_base, k)
            for index, at in enumerate(self.offsets):
                key = (*at[:-2], at[-1])
                totals[index] = self._multiply_add(rows[at[:-1]][k], values[key], totals[index])
        return totals

    def _row(self, base: str, at: Coordinates) -> list[str]:
        """`step` neighbours along K of one row of A."""
        offset = _linear((*at, 0), self.a.extents()) * (storage_bits(self.a.element) // 8)
        return self._load(self.a.element, base, offset, self.step)

    def _columns(self, base: str, k: int) -> dict[Coordinates, str]:
        """One row of B at the thread's columns, in vectors of adjacent ones."""
        size = storage_bits(self.b.element) // 8
        wanted = sorted({(*at[:-2], at[-1]) for at in self.offsets})
        values: dict[Coordinates, str] = {}
        for run in _runs(wanted, max(1, MAX_ACCESS_BYTES // size)):
            *batch, column = run[0]
            offset = _linear((*batch, k, column), self.b.extents()) * size
            values.update(zip(run, self._load(self.b.element, base, offset, len(run)), strict=True))
        return values

    def _load(self, element: Attribute, base: str, offset: int, count: int) -> list[str]:
        bits = word_bits_of(element, count)
        words = max(1, count * storage_bits(element) // bits)
        place = base if offset == 0 else self.fn.value(f"add nuw nsw i32 {base}, {offset}")
        loaded = load_shared(self.fn, place, words, bits)
        return [self._widen(element, v) for v in unpack(self.fn, element, loaded, bits)]

    def _multiply_add(self, a: str, b: str, total: str) -> str:
        kind = llvm_type(self.wide)
        if isinstance(self.wide, IntegerType):
            product = self.fn.value(f"mul {kind} {a}, {b}")
            return self.fn.value(f"add {kind} {total}, {product}")
        name = {"float": "f32", "double": "f64"}[kind]
        return self.fn.value(
            f"call {kind} @llvm.fma.{name}({kind} {a}, {kind} {b}, {kind} {total})"
        )

    def _widen(self, element: Attribute, value: str) -> str:
        if element == self.wide:
            return value
        if isinstance(element, IntegerType):
            return self.fn.value(f"sext {llvm_type(element)} {value} to {llvm_type(self.wide)}")
        return self.ctx.target.convert_float(self.fn, element, self.wide, None, value, "rtne")

    def _narrow(self, value: str) -> str:
        if self.result == self.wide:
            return value
        return self.ctx.target.convert_float(self.fn, self.wide, self.result, None, value, "rtne")


def _linear(at: Coordinates, shape: Coordinates) -> int:
    index = 0
    for position, extent in zip(at, shape, strict=True):
        index = index * extent + position
    return index


def _runs(wanted: list[Coordinates], limit: int) -> list[list[Coordinates]]:
    """Groups of up to `limit` coordinates that are adjacent in the last dim, aligned as a whole."""
    runs: list[list[Coordinates]] = []
    for at in wanted:
        last = runs[-1] if runs else None
        fits = last is not None and len(last) < limit and at == (*last[-1][:-1], last[-1][-1] + 1)
        if fits and last is not None and last[0][-1] % limit == 0:
            last.append(at)
        else:
            runs.append([at])
    return [part for run in runs for part in _powers(run)]


def _powers(run: list[Coordinates]) -> list[list[Coordinates]]:
    """A run cut into parts whose lengths are powers of two."""
    parts = []
    while run:
        count = 1 << (len(run).bit_length() - 1)
        parts.append(run[:count])
        run = run[count:]
    return parts
