"""The loops of a nest: outer dimensions, and the runs of vectors along the lane dimension.

A lane loop is one run of chunks, or two where prefix masks split it (`full_chunks`). A nest
that only streams data starts at a line boundary of what it stores:

    | head: up to the line | full chunks, aligned, unmasked | rest: masked |

NumPy aligns large arrays to 16 bytes modulo 64: without the shift every vector store of 64
bytes touches two lines (measured: vector add of 2^20 elements takes 1.25 times as long).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.ir import Block, SSAValue

from tilewright.ir.types import i32
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.nests import streaming
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP, ORIGIN, Coords, loop_coord
from tilewright.targets.cpu.nests.dividends import (
    Dividend,
    are_nonnegative,
    assume_nonnegative,
)
from tilewright.targets.cpu.nests.elements import guarded
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.fetching import Fetcher
from tilewright.targets.cpu.nests.fold_ends import FoldEnd
from tilewright.targets.cpu.nests.full_chunks import (
    Prefix,
    assume,
    find_prefixes,
    full_extent,
)
from tilewright.targets.cpu.nests.loop_order import NestBody, chunks
from tilewright.targets.cpu.nests.pieces import Cut
from tilewright.targets.cpu.nests.stores import Redirect
from tilewright.targets.cpu.nests.written import written_end
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import Root
from tilewright.targets.cpu.schedule.storage import Buffer


@dataclass(frozen=True)
class Square:
    """Vectors of `side` lanes are made for `side` rows along `dim` at once: see `squares.py`."""

    dim: int
    side: int


@dataclass
class Nest:
    """One nest under construction: roots over `space`, vectors along `lane_dim`."""

    lowering: Lowering
    roots: Sequence[Root]
    body: NestBody
    lane_dim: int | None
    lanes: int
    ev: Evaluator
    redirects: dict[Root, Redirect] = field(default_factory=dict)
    aside: dict[Root, Buffer] = field(default_factory=dict)
    scalars: list[tuple[SSAValue, SSAValue]] = field(default_factory=list)
    prefixes: tuple[Prefix, ...] = ()
    dividends: tuple[Dividend, ...] = ()
    streams: bool = False
    fetcher: Fetcher | None = None
    fold_end: FoldEnd | None = None
    cuts: tuple[Cut, ...] = ()
    square: Square | None = None

    @property
    def space(self) -> tuple[int, ...]:
        """The extents of the nest's dimensions."""
        return self.roots[0].space

    @property
    def outer(self) -> list[int]:
        """The dimensions of scalar loops in which nothing is folded."""
        return [
            dim
            for dim, size in enumerate(self.space)
            if size > 1 and dim not in (self.lane_dim, self.fold_axis)
        ]

    @property
    def fold_axis(self) -> int | None:
        """The dimension that the nest's reductions or scans run along."""
        return next((root.axis for root in self.roots if root.axis is not None), None)

    def coords(self) -> Coords:
        """The index of the element that the innermost body computes."""
        return tuple(
            ORIGIN if size == 1 else loop_coord(LANE_LOOP if dim == self.lane_dim else dim)
            for dim, size in enumerate(self.space)
        )


def loop_over(nest: Nest, dims: Sequence[int], inner: Callable[[], None]) -> None:
    """Do `inner` inside of one scalar loop per dimension of `dims`."""
    if not dims:
        inner()
        return
    emit = nest.ev.emit
    end = written_rows(nest, dims[0])
    variable, _ = emit.open_loop()
    nest.ev.variables[dims[0]] = variable
    loop_over(nest, dims[1:], inner)
    emit.close_loop((0, end, 1))


def written_rows(nest: Nest, dim: int) -> int | SSAValue:
    """How many rows along an outer dimension the masks of a nest's writes do not hide wholly.

    A store without any lane costs hundreds of cycles where its page is not mapped.
    """
    end = written_end(nest.ev, nest.roots, dim, nest.space[dim])
    return nest.space[dim] if end is None else end


def lane_chunks(nest: Nest) -> list[tuple[int, int, int]]:
    """(start, count, lanes) of the runs of vectors along the lane dimension."""
    if nest.lane_dim is None:
        return [(0, 1, 1)]
    return chunks(nest.space[nest.lane_dim], nest.lanes)


def in_chunk(nest: Nest, chunk: tuple[int, int, int], inner: Callable[[], None]) -> None:
    """Do `inner` for every vector of one run."""
    start, count, lanes = chunk
    if count == 1 and (start or not nest.prefixes):
        nest.ev.enter_chunk(lanes)
        nest.ev.variables[LANE_LOOP] = start
        inner()
    elif nest.streams and start == 0 and count * lanes == nest.space[nest.lane_dim or 0]:
        _stream(nest, count * lanes, inner)
    else:
        for run in runs(nest, chunk):
            _loop(nest, run, lanes, inner)


@dataclass(frozen=True)
class Run:
    """Chunks from `first` to `last`.

    In a full run the prefix masks are known to hold, and the nest's dividends not to be negative.
    """

    first: int | SSAValue
    last: int | SSAValue
    is_full: bool


def runs(nest: Nest, chunk: tuple[int, int, int]) -> list[Run]:
    """The full and the masked run of a loop over chunks; one run where nothing is masked."""
    start, count, lanes = chunk
    size = start + count * lanes
    emit = nest.ev.emit
    nest.ev.enter_chunk(lanes)
    last = _last_chunk(nest, start, size)
    if not (nest.prefixes or nest.dividends):
        return [Run(start, last, False)]
    extent = _full_extent(nest, size)
    if not (nest.prefixes or isinstance(last, int)):
        extent = emit.integer("minsi", extent, last)
    end = emit.integer("andi", extent, emit.index(-lanes))
    if start:
        end = emit.integer("maxsi", end, emit.index(start))
    return [Run(start, end, True), Run(end, last, False)]


def _full_extent(nest: Nest, size: int) -> SSAValue:
    """Of how many of `size` elements (i32) the assumptions of a full run hold."""
    ev, emit = nest.ev, nest.ev.emit
    extent = full_extent(ev, nest.prefixes, size) if nest.prefixes else emit.index(size)
    if not nest.dividends:
        return extent
    holds = are_nonnegative(ev, nest.dividends, size)
    return emit.pure(SelectOp, (holds, extent, emit.index(0)), i32)


def _last_chunk(nest: Nest, start: int, size: int) -> int | SSAValue:
    """Where the chunks from `start` to `size` end that a fold takes, or that write anything."""
    emit, lanes = nest.ev.emit, nest.ev.lanes
    extent: SSAValue | None = None
    if nest.fold_end is not None and nest.fold_axis == nest.lane_dim:
        extent = nest.fold_end.end(nest.ev, size)
    elif nest.fold_axis is None and nest.lane_dim is not None:
        extent = written_end(nest.ev, nest.roots, nest.lane_dim, size)
    if extent is None:
        return size
    above = emit.integer("addi", extent, emit.index(lanes - 1))
    last = emit.integer("andi", above, emit.index(-lanes))
    return emit.integer("maxsi", last, emit.index(start)) if start else last


def enter_run(nest: Nest, run: Run, lanes: int) -> None:
    """Start evaluating the chunks of a run."""
    nest.ev.enter_chunk(lanes)
    if run.is_full:
        assume_nonnegative(nest.ev, nest.dividends)
        if nest.prefixes:
            assume(nest.ev, nest.prefixes)


def _loop(nest: Nest, run: Run, lanes: int, inner: Callable[[], None]) -> None:
    """One loop over chunks."""
    enter_run(nest, run, lanes)
    variable, _ = nest.ev.emit.open_loop()
    nest.ev.variables[LANE_LOOP] = variable
    inner()
    nest.ev.emit.close_loop((run.first, run.last, lanes))


def _stream(nest: Nest, size: int, inner: Callable[[], None]) -> None:
    """Head up to the first line boundary, aligned full chunks, masked rest."""
    ev, emit, lanes = nest.ev, nest.ev.emit, nest.lanes
    ev.enter_chunk(lanes)
    head = streaming.head_elems(ev, nest.roots, nest.coords())
    extent = _full_extent(nest, size)
    whole = emit.integer("andi", emit.integer("subi", extent, head), emit.index(-lanes))
    end = emit.integer("maxsi", emit.integer("addi", head, whole), head)
    large = streaming.is_large(ev, nest.roots, nest.coords(), head)
    for redirect in nest.redirects.values():
        large = emit.integer("andi", large, redirect.is_safe)
    has_head = emit.compare("sgt", head, emit.index(0))
    guarded(ev, has_head, lambda: _head(nest, head, inner))
    _aligned(nest, Run(head, end, True), large, inner)
    _rest(nest, (end, _written_extent(nest, size)), size, inner)


def _head(nest: Nest, head: SSAValue, inner: Callable[[], None]) -> None:
    """One masked vector of at most a line, up to where lines of the store begin."""
    ev = nest.ev
    ev.enter_chunk(streaming.line_lanes(nest.roots))
    ev.variables[LANE_LOOP] = 0
    ev.limit_lanes(ev.emit.index(0), head)
    inner()


def _aligned(nest: Nest, run: Run, large: SSAValue, inner: Callable[[], None]) -> None:
    """The loop twice: with stores that bypass the cache where the launch is large, and not."""
    emit = nest.ev.emit
    blocks = []
    for is_streaming in (True, False):
        nest.ev.is_streaming = is_streaming
        emit.push(Block())
        _loop(nest, run, nest.lanes, inner)
        emit.effect(YieldOp, ())
        blocks.append(emit.pop())
    nest.ev.is_streaming = False
    emit.choose(large, (blocks[0], blocks[1]))


def _written_extent(nest: Nest, size: int) -> SSAValue:
    """How many elements the nest may write: fewer than `size` where its stores are masked.

    A load that is masked does not mask the store.
    """
    ev, emit = nest.ev, nest.ev.emit
    assert nest.lane_dim is not None
    end = written_end(ev, nest.roots, nest.lane_dim, size)
    stores = tuple(access for access in nest.body.accesses if access.is_store)
    masks = find_prefixes(ev, stores) if len(stores) == 1 else None
    of_all = tuple(mask for mask in masks or () if mask.loop is None)
    extent = full_extent(ev, of_all, size) if of_all else emit.index(size)
    return extent if end is None else emit.integer("minsi", extent, end)


def _rest(
    nest: Nest, bounds: tuple[SSAValue, SSAValue], size: int, inner: Callable[[], None]
) -> None:
    """What is left of what the masks do not hide, masked and line by line: less than a chunk."""
    ev, lanes = nest.ev, streaming.line_lanes(nest.roots)
    ev.enter_chunk(lanes)
    variable, _ = ev.emit.open_loop()
    ev.variables[LANE_LOOP] = variable
    ev.limit_lanes(variable, ev.emit.index(size))
    inner()
    ev.emit.close_loop((*bounds, lanes))
