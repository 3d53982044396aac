"""Emits one fused nest: what it runs over, and the loops around its bodies and folds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.types import element_of
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.nests import elements, gathers, hazards, streaming
from tilewright.targets.cpu.nests.bodies import do_body
from tilewright.targets.cpu.nests.columns import for_each_case, go_down, goes_down, steady_cuts
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP, Coord
from tilewright.targets.cpu.nests.dividends import Dividend, find_dividends
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.fetching import Fetcher
from tilewright.targets.cpu.nests.finishing import finish
from tilewright.targets.cpu.nests.fold_ends import FoldEnd, find_fold_end
from tilewright.targets.cpu.nests.folds import fold_axis, fold_lanes
from tilewright.targets.cpu.nests.full_chunks import Prefix, find_prefixes
from tilewright.targets.cpu.nests.lane_loops import Nest, in_chunk, lane_chunks, loop_over
from tilewright.targets.cpu.nests.loop_order import NestBody, choose_lane_dim, choose_lanes, survey
from tilewright.targets.cpu.nests.row_factors import row_factor, where_it_changes
from tilewright.targets.cpu.nests.squares import emit_squares, find_square
from tilewright.targets.cpu.nests.stores import Redirect
from tilewright.targets.cpu.nests.summary import summary_of
from tilewright.targets.cpu.schedule.fetches import Fetch
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import SCALAR_KINDS, Root, RootKind

# A lane loop is split into full and masked chunks when its body is no longer than this, and it has
# this many chunks or runs for this many rows. Chosen, not measured: it bounds the code, which is
# emitted twice; masked chunks alone compute the same. Measured on a Zen 5, busy, 2026-11-23, in ns
# for each 4-bit weight of tiles of 64x64: two masked chunks 0.76, split 0.28; one 0.50, split 0.25.
_MIN_CHUNKS = 3
_MIN_ROWS = 8
_MAX_DOUBLED_OPS = 80

REGISTERED = (gathers,)
"""Modules whose rules are the evaluator's."""


def emit_nest(
    lowering: Lowering,
    out: Block,
    roots: Sequence[Root],
    fetches: Sequence[Fetch] = (),
    is_detour: bool = False,
    is_rare: bool = False,
) -> Operation:
    """Append the nest of `roots` to `out` and record where its results are found.

    `fetches` are the rows that it asks for, for who comes after it. A detour, which runs
    only where memory overlaps, is not reported; what is rare runs where a mask hides a part, or
    where a product could not store its sums itself. The result is the nest.
    """
    fresh = {root.values[0] for root in roots if root.kind is RootKind.MATERIALIZE}
    body = survey(lowering.bufferization, roots, fresh)
    lane_dim = choose_lane_dim(lowering, roots, body)
    space = roots[0].space
    is_fold = lane_dim is not None and all(root.axis == lane_dim for root in roots)
    lanes = 1 if lane_dim is None else choose_lanes(lowering, space[lane_dim], body, is_fold)
    if lanes == 1:
        lane_dim = None
    square = None if fetches else find_square(lowering, roots, body, lane_dim)
    lanes = lanes if square is None else square.side
    block = Block()
    emit = Emitter(block, roots[0].op.location)
    nest = Nest(
        lowering, roots, body, lane_dim, lanes, Evaluator(lowering, emit, lanes, fresh=fresh)
    )
    nest.square = square
    nest.body = body = _relabelled(nest)
    nest.cuts = () if square else steady_cuts(nest)
    flag = _guard_stores(nest)
    if lane_dim is not None and body.num_ops <= _MAX_DOUBLED_OPS and _is_split(nest, is_rare):
        nest.prefixes = _usable_prefixes(nest)
        nest.dividends = _usable_dividends(nest)
    if lane_dim is not None and space[lane_dim] >= _MIN_CHUNKS * lanes:
        nest.streams = not _is_redirected(nest) and streaming.is_stream(nest.ev, roots, body)
    for root in roots:
        elements.prepare(nest.ev, root)
    nest.fold_end = _fold_end(nest)
    if fetches and lane_dim is not None:
        nest.fetcher = Fetcher(nest.ev, block, fetches)
    _emit_loops(nest)
    ops = finish(nest, out, block, flag)
    if not is_detour:
        lowering.report.add_nest(ops, summary_of(nest, is_rare))
    return ops[0]


def _is_split(nest: Nest, is_rare: bool) -> bool:
    """Whether chunks that no mask hides anything of have code of their own."""
    assert nest.lane_dim is not None
    if goes_down(nest):
        return False
    num_chunks = nest.space[nest.lane_dim] // nest.lanes
    if is_rare or num_chunks >= _MIN_CHUNKS:
        return num_chunks >= _MIN_CHUNKS
    if num_chunks < 2 and nest.fold_axis is not None:
        return False
    return prod(nest.space) >= _MIN_ROWS * nest.lanes * num_chunks


def _usable_prefixes(nest: Nest) -> tuple[Prefix, ...]:
    """The masks that split the lane loop: none if they change inside of it, along a fold."""
    prefixes = find_prefixes(nest.ev, nest.body.accesses) or ()
    inner = _inner_loops(nest)
    moving = {
        prefix
        for prefix in prefixes
        if any(loop in inner for coord in prefix.coords for loop, _ in coord.terms)
    }
    if any(prefix.loop is not None for prefix in moving):
        return ()
    return tuple(prefix for prefix in prefixes if prefix not in moving)


def _usable_dividends(nest: Nest) -> tuple[Dividend, ...]:
    """The dividends whose sign is asked for before the lane loop: none that change inside of it."""
    if nest.square:
        return ()
    inner = _inner_loops(nest)
    return tuple(
        each
        for each in find_dividends(nest.ev, nest.body.quotients)
        if not any(loop in inner for coord in each.coords for loop, _ in coord.terms)
    )


def _inner_loops(nest: Nest) -> set[int]:
    """The dimensions whose loops lie inside of the lane loop."""
    inner = {dim for dim in (nest.fold_axis,) if dim is not None and dim != nest.lane_dim}
    inner |= set(nest.outer) if nest.cuts else set()
    return inner | ({nest.square.dim} if nest.square else set())


def _fold_end(nest: Nest) -> FoldEnd | None:
    """Where the nest's reductions may end before their axis does."""
    axis = nest.fold_axis
    if axis is None:
        return None
    loop = LANE_LOOP if axis == nest.lane_dim else axis
    return find_fold_end(nest.ev, nest.roots, nest.coords(), loop)


def _guard_stores(nest: Nest) -> SSAValue | None:
    """Redirect stores that could overtake accesses; the run-time flag if there is one."""
    # Atomics have no order among their elements; what they are made of was read before.
    if nest.roots[0].kind in (*SCALAR_KINDS, RootKind.UPDATE):
        return None
    if prod(nest.space) == nest.lanes and nest.fold_axis is None:
        return None
    pairs = hazards.find_pairs(nest.ev, nest.body)
    hazard = hazards.classify(nest.ev, pairs)
    if hazard is hazards.Hazard.NONE:
        return None
    flag = hazards.is_safe(nest.ev, pairs) if hazard is hazards.Hazard.TEST else None
    for root in nest.roots:
        if root.kind is RootKind.STORE:
            element = element_of(root.values[1].type)
            buffer = nest.lowering.allocate(nest.space, element, "store")
            # A redirected store is contiguous along the lanes, and so must its buffer be.
            buffer = replace(buffer, last=nest.lane_dim)
            nest.aside[root] = buffer
            if flag is not None:
                nest.redirects[root] = Redirect(flag, buffer)
    return flag


def _is_redirected(nest: Nest) -> bool:
    """Whether stores always take the way through the arena."""
    return bool(nest.aside) and not nest.redirects


def _relabelled(nest: Nest) -> NestBody:
    """The surveyed accesses with the lane dimension's loop as the lane loop."""

    def relabel(coord: Coord) -> Coord:
        terms = tuple((LANE_LOOP if loop == nest.lane_dim else loop, s) for loop, s in coord.terms)
        return Coord(terms, coord.offset)

    accesses = tuple(
        type(t)(t.value, tuple(relabel(c) for c in t.coords), t.op, t.is_store)
        for t in nest.body.accesses
    )
    quotients = tuple((v, tuple(relabel(c) for c in place)) for v, place in nest.body.quotients)
    return replace(nest.body, accesses=accesses, quotients=quotients)


def _emit_loops(nest: Nest) -> None:
    """The outer loops around whatever happens along lanes and fold axis."""
    axis = nest.fold_axis
    if nest.square is not None:
        emit_squares(nest, nest.square)
        return
    if nest.cuts:
        cases = partial(for_each_case, nest, partial(_emit_down, nest, axis))
        down = partial(go_down, nest) if goes_down(nest) else cases
        for chunk in lane_chunks(nest):
            in_chunk(nest, chunk, down)
        return
    loop_over(nest, nest.outer, lambda: _emit_inner(nest, axis))


def _emit_down(nest: Nest, axis: int | None) -> None:
    """The loops down from one vector, whose cuts are known."""
    inner = partial(do_body, nest) if axis is None else partial(fold_axis, nest, axis)
    loop_over(nest, nest.outer, inner)


def _emit_inner(nest: Nest, axis: int | None) -> None:
    if axis is None:
        factor = row_factor(nest)
        if factor is None:
            _emit_chunks(nest)
        else:
            where_it_changes(nest, factor, lambda: _emit_chunks(nest))
    elif axis == nest.lane_dim:
        fold_lanes(nest)
    else:
        for chunk in lane_chunks(nest):
            in_chunk(nest, chunk, lambda: fold_axis(nest, axis))


def _emit_chunks(nest: Nest) -> None:
    """The vectors of a row in which nothing is folded."""
    for chunk in lane_chunks(nest):
        in_chunk(nest, chunk, lambda: do_body(nest))
