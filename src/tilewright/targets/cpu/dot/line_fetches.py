"""Lines of memory that a block of a `dot` asks for while it multiplies, for later blocks.

Whatever comes from far away is asked for into the second-level cache a line at a time: a burst
would stall on the few buffers for lines on their way. A fetch changes no result and never faults,
so where it is too early, too late or beside the point it only costs its instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.machine.cpus import LINE_BYTES
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.vectors import element_address, scaled

TURN_STEPS = 4
"""The steps of k in one turn of a loop that fetches, over which the lines of the turn are spread.

Measured on Zen 5, 2026-11-23, one thread, f32 1000³, 1024³: 8 steps are as fast and cost a tenth of
the time to compile; 2 reach 0.98 of the speed."""

# By definition: `llvm.prefetch`'s locality for the first and the second level.
_NEAR, _FAR = 3, 2


@dataclass(frozen=True)
class LineFetch:
    """Lines of a matrix, counted row by row: `lines` in a row, `total` in all.

    A turn of the loop takes the next `per_turn` of them. What lies before the first or behind the
    last is that one once more. `is_near`: into the first-level cache.
    """

    lines: int
    total: int
    per_turn: int
    is_near: bool = False

    @property
    def lines_at_once(self) -> int:
        """Lines that follow each other in memory wherever a turn begins: a row, or one line."""
        return self.lines if self.per_turn % self.lines == 0 else 1


def fetch_parameters(fetches: Sequence[LineFetch]) -> str:
    """What a block that fetches is told: per fetch the matrix, bytes from row to row, first line.

    The number of the first line may be negative.
    """
    return "".join(
        f", ptr %fetch{number}, i64 %fetch{number}_stride, i64 %fetch{number}_line"
        for number in range(len(fetches))
    )


def emit_fetches(
    fn: FunctionBuilder, fetches: Sequence[LineFetch], turn: str, step: int, num_steps: int
) -> None:
    """The fetches of one step of a turn of `num_steps`."""
    callee = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    for number, fetch in enumerate(fetches):
        level = _NEAR if fetch.is_near else _FAR
        at_once = fetch.lines_at_once
        count = fetch.per_turn // at_once
        for index in range(count * step // num_steps, count * (step + 1) // num_steps):
            line = scaled(fn, turn, fetch.per_turn, index * at_once)
            start = _address(fn, number, fetch, line)
            for offset in range(0, at_once * LINE_BYTES, LINE_BYTES):
                at = element_address(fn, "i8", start, offset)
                fn.emit(f"call void {callee}(ptr {at}, i32 0, i32 {level}, i32 1)")


def _address(fn: FunctionBuilder, number: int, fetch: LineFetch, index: str) -> str:
    """Where the line is that comes `index` lines behind the first of a block."""
    line = fn.value(f"add nsw i64 %fetch{number}_line, {index}")
    for name, bound in (("smax", 0), ("smin", fetch.total - fetch.lines_at_once)):
        callee = fn.module.declare(f"llvm.{name}.i64", "i64", "i64, i64")
        line = fn.value(f"call i64 {callee}(i64 {line}, i64 {bound})")
    row = fn.value(f"udiv i64 {line}, {fetch.lines}")
    column = fn.value(f"urem i64 {line}, {fetch.lines}")
    start = fn.value(f"mul i64 {row}, %fetch{number}_stride")
    row_at = fn.value(f"getelementptr i8, ptr %fetch{number}, i64 {start}")
    return element_address(fn, "i8", row_at, scaled(fn, column, LINE_BYTES))
