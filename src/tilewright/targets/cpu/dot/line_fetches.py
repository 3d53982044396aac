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
    """Rows of a matrix, `lines` long: turns take the next `rows_at_once`, or of one the next part.

    A row's `parts`, a power of two, are as long as each other and overlap where they have to. A
    turn before the first one or behind the last fetches what the last does. `is_near`: into the
    first-level cache.

    Each address costs some ten instructions, which take their turns with the multiply-adds: a turn
    asks for lines that follow each other, so that it computes one.
    """

    lines: int
    rows: int
    parts: int = 1
    rows_at_once: int = 1
    is_near: bool = False

    @property
    def num_turns(self) -> int:
        """The turns that fetch all of the matrix."""
        return -(-self.rows // self.rows_at_once) * self.parts

    @property
    def part_lines(self) -> int:
        """Lines from the start of one part to that of the next."""
        return self.lines // self.parts

    @property
    def lines_at_once(self) -> int:
        """Lines of a part."""
        return self.lines - (self.parts - 1) * self.part_lines


def spread(lines: int, rows: int, num_turns: int, is_near: bool = False) -> LineFetch:
    """The fetch of a matrix in no more than `num_turns` turns, as few lines in each as can be."""
    rows_at_once, parts = max(1, -(-rows // num_turns)), 1
    while 2 * parts <= lines and 2 * parts * rows <= num_turns:
        parts *= 2
    return LineFetch(lines, rows, parts, rows_at_once, is_near)


def fetch_parameters(fetches: Sequence[LineFetch]) -> str:
    """What a block that fetches is told: per fetch the matrix, bytes from row to row, first turn.

    The number of the first turn, among those that fetch the matrix, may be negative.
    """
    return "".join(
        f", ptr %fetch{number}, i64 %fetch{number}_stride, i64 %fetch{number}_turn"
        for number in range(len(fetches))
    )


def addresses_of_turn(
    fn: FunctionBuilder, fetches: Sequence[LineFetch], turn: str
) -> list[tuple[str, int]]:
    """The addresses that a turn fetches, and `llvm.prefetch`'s locality for each."""
    found: list[tuple[str, int]] = []
    for number, fetch in enumerate(fetches):
        level = _NEAR if fetch.is_near else _FAR
        start = _start_of_turn(fn, number, fetch, turn)
        for row in range(fetch.rows_at_once):
            if row:
                start = element_address(fn, "i8", start, f"%fetch{number}_stride")
            for line in range(fetch.lines_at_once):
                found.append((element_address(fn, "i8", start, line * LINE_BYTES), level))
    return found


def emit_fetches(
    fn: FunctionBuilder, addresses: Sequence[tuple[str, int]], step: int, num_steps: int
) -> None:
    """The share of one step in the fetches of a turn of `num_steps`."""
    callee = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    count = len(addresses)
    for at, level in addresses[count * step // num_steps : count * (step + 1) // num_steps]:
        fn.emit(f"call void {callee}(ptr {at}, i32 0, i32 {level}, i32 1)")


def _start_of_turn(fn: FunctionBuilder, number: int, fetch: LineFetch, turn: str) -> str:
    """Where the lines of a turn of a block begin."""
    place = fn.value(f"add nsw i64 %fetch{number}_turn, {turn}")
    place = scaled(fn, place, fetch.rows_at_once)
    callee = fn.module.declare("llvm.umin.i64", "i64", "i64, i64")
    last = fetch.rows * fetch.parts - fetch.rows_at_once
    place = fn.value(f"call i64 {callee}(i64 {place}, i64 {last})")
    row = fn.value(f"udiv i64 {place}, {fetch.parts}") if fetch.parts > 1 else place
    start = fn.value(f"mul i64 {row}, %fetch{number}_stride")
    row_at = fn.value(f"getelementptr i8, ptr %fetch{number}, i64 {start}")
    if fetch.parts == 1:
        return row_at
    part = fn.value(f"urem i64 {place}, {fetch.parts}")
    return element_address(fn, "i8", row_at, scaled(fn, part, fetch.part_lines * LINE_BYTES))
