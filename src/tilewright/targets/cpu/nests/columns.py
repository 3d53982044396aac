"""Nests that go down from vectors whose loads are by pieces: where a piece ends is asked once.

    acc[c, r] += x[r * 33 + c % 33]      for the lanes of a chunk the cuts are those of every row

The loop over chunks is the outer one, and behind one test for each chunk the rows are loops of
their own: of whole vectors, of two pieces, or of any number. Where nothing is folded the first two
take the rows for which masks hold as comparisons tell (`piece_masks`), and the last one the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.ir import Block, SSAValue

from tilewright.analysis.separation import Apart, find_apart
from tilewright.ir.types import i32
from tilewright.ops.control_flow import YieldOp
from tilewright.targets.cpu.nests.bodies import do_body, loads_by_pieces
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.full_chunks import Prefix, assume
from tilewright.targets.cpu.nests.lane_loops import Nest, written_rows
from tilewright.targets.cpu.nests.piece_masks import along_lanes, along_rows, are_full, shown_rows
from tilewright.targets.cpu.nests.pieces import Cut
from tilewright.targets.cpu.nests.piecewise import find_second, is_whole, may_be_two
from tilewright.targets.cpu.nests.row_factors import row_factor
from tilewright.targets.cpu.nests.stores import choose
from tilewright.targets.cpu.schedule.roots import Root, RootKind

# Chosen, not measured: they bound the code, which is emitted three times, for rows that are many
# enough to make up for the test. Which loop is the outer one changes no result.
_MAX_OPS = 60
_MIN_ROWS = 4


def steady_cuts(nest: Nest) -> tuple[Cut, ...]:
    """The cuts of a nest's loads by pieces, where they are the same in all rows."""
    rows = [dim for dim in (*nest.outer, nest.fold_axis) if dim is not None]
    if nest.lanes == 1 or nest.lane_dim in rows or nest.body.num_ops > _MAX_OPS:
        return ()
    if prod(nest.space[dim] for dim in rows) < _MIN_ROWS or row_factor(nest) is not None:
        return ()
    if not all(_takes_any_order(nest, root) for root in nest.roots):
        return ()
    cuts = tuple(dict.fromkeys(cut for each in loads_by_pieces(nest) for cut in each.cuts))
    loops = {loop for cut in cuts for coord in cut.coords for loop, _ in coord.terms}
    return () if loops.intersection(rows) else cuts


def _takes_any_order(nest: Nest, root: Root) -> bool:
    """Whether rows and lanes may change places: no two elements are stored at one address."""
    if root.kind is RootKind.STORE:
        structure = nest.lowering.bufferization.structure
        return find_apart(structure, root.values[0]) is Apart.YES
    return root.kind in (RootKind.MATERIALIZE, RootKind.REDUCE)


def goes_down(nest: Nest) -> bool:
    """Whether a nest's rows are `go_down`'s: in one loop, with nothing folded."""
    return bool(nest.cuts) and nest.fold_axis is None and len(nest.outer) == 1


def go_down(nest: Nest) -> None:
    """The rows below one vector: those whose masks are known, then the others."""
    (row,) = nest.outer
    end = written_rows(nest, row)
    last = nest.ev.emit.index(end) if isinstance(end, int) else end
    _rows(nest, row, (_go_down_in_few(nest, row, last), last))


def _go_down_in_few(nest: Nest, row: int, last: SSAValue) -> SSAValue:
    """The first rows of at most `last`, where they are in one piece or two; how many (i32)."""
    ev, emit, cuts = nest.ev, nest.ev.emit, nest.cuts
    lanes, rows = along_lanes(nest), along_rows(nest, row)

    def of(held: Sequence[Prefix], second: SSAValue | None) -> SSAValue:
        shown = shown_rows(ev, rows, last, second)
        ev.is_whole, ev.second_lane = (second is None, frozenset(cuts)), second
        ev.enter_chunk(ev.lanes)
        assume(ev, (*held, *rows))
        _rows(nest, row, (emit.index(0), shown))
        ev.enter_chunk(ev.lanes)
        ev.is_whole = ev.second_lane = None
        return shown

    def in_two() -> SSAValue:
        if not may_be_two(ev, cuts):
            return emit.index(0)
        second, are_all = find_second(ev, cuts)
        return _choose_count(ev, are_all, lambda: of((), second), lambda: emit.index(0))

    # Pieces have masks of their own, which those along the lanes are made a part of.
    at_once = emit.integer("andi", is_whole(ev, cuts), are_full(ev, lanes))
    return _choose_count(ev, at_once, lambda: of(lanes, None), in_two)


def _rows(nest: Nest, row: int, bounds: tuple[SSAValue, SSAValue]) -> None:
    variable, _ = nest.ev.emit.open_loop()
    nest.ev.variables[row] = variable
    do_body(nest)
    nest.ev.emit.close_loop((*bounds, 1))


def _choose_count(
    ev: Evaluator,
    condition: SSAValue,
    then: Callable[[], SSAValue],
    otherwise: Callable[[], SSAValue],
) -> SSAValue:
    """Do one of two things, each of which gives a number (i32)."""
    emit, blocks, saved = ev.emit, [], ev.emit.pin
    for generate in (then, otherwise):
        emit.push(Block())
        emit.pin = len(emit.blocks) - 1
        emit.effect(YieldOp, (generate(),))
        emit.pin = saved
        blocks.append(emit.pop())
    (count,) = emit.choose(condition, (blocks[0], blocks[1]), (i32,))
    return count


def for_each_case(nest: Nest, emit_rows: Callable[[], None]) -> None:
    """Emit the rows of a chunk for each number of pieces that it may have."""
    ev, cuts = nest.ev, nest.cuts
    assumed, nonnegative = dict(ev.assumed), set(ev.nonnegative)
    floor, limit = ev.emit.floor, ev.limit

    def case(whole: bool, second: SSAValue | None = None) -> None:
        # What is computed or taken for granted in one case is not for the next one.
        ev.enter_chunk(ev.lanes)
        ev.assumed.update(assumed)
        ev.nonnegative.update(nonnegative)
        ev.emit.floor, ev.limit = floor, limit
        ev.is_whole, ev.second_lane = (whole, frozenset(cuts)), second
        emit_rows()
        ev.is_whole = ev.second_lane = None

    def in_several() -> None:
        if not may_be_two(ev, cuts):
            case(False)
            return
        second, are_all = find_second(ev, cuts)
        choose(ev, are_all, lambda: case(False, second), lambda: case(False))

    choose(ev, is_whole(ev, cuts), lambda: case(True), in_several)
