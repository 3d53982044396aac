"""Emits one fused nest: loops, vector bodies, folds, and the stores at their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilewright.analysis.commutation import commutes
from tilewright.ir.op import build
from tilewright.ir.types import element_of, i1
from tilewright.ops.control_flow import IfOp, YieldOp
from tilewright.ops.reduction.ir import CombineOp
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.nests import combining, elements, extremes, hazards, streaming
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP, ORIGIN, Coord, Coords, loop_coord
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.fetching import Fetcher
from tilewright.targets.cpu.nests.fetching_ahead import fetch_ahead, fetch_rows
from tilewright.targets.cpu.nests.fold_ends import FoldEnd, find_fold_end
from tilewright.targets.cpu.nests.full_chunks import Prefix, assume, find_prefixes
from tilewright.targets.cpu.nests.lane_loops import (
    Nest,
    enter_run,
    in_chunk,
    lane_chunks,
    loop_over,
    runs,
)
from tilewright.targets.cpu.nests.loop_order import (
    NestBody,
    choose_lane_dim,
    choose_lanes,
    survey,
)
from tilewright.targets.cpu.nests.row_factors import row_factor, where_it_changes
from tilewright.targets.cpu.nests.scans import emit_scan
from tilewright.targets.cpu.nests.stores import Redirect, store
from tilewright.targets.cpu.nests.summary import names_of, summary_of
from tilewright.targets.cpu.nests.updates import update
from tilewright.targets.cpu.ops import NestOp
from tilewright.targets.cpu.ops import YieldOp as NestYieldOp
from tilewright.targets.cpu.schedule.fetches import Fetch
from tilewright.targets.cpu.schedule.inline import is_tile
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import SCALAR_KINDS, Root, RootKind
from tilewright.targets.cpu.schedule.storage import Buffer

Values = list[SSAValue]

# A lane loop is split into full and masked chunks when its body is no longer than this, and it has
# this many chunks or runs for this many rows. Chosen, not measured: it bounds the code, which is
# emitted twice; masked chunks alone compute the same. Measured on a Zen 5, busy, 2026-11-23, in ns
# for each 4-bit weight of tiles of 64x64: two masked chunks 0.76, split 0.28; one 0.50, split 0.25.
_MIN_CHUNKS = 3
_MIN_ROWS = 8
_MAX_DOUBLED_OPS = 80


def emit_nest(
    lowering: Lowering,
    out: Block,
    roots: Sequence[Root],
    fetches: Sequence[Fetch] = (),
    is_detour: bool = False,
    is_rare: bool = False,
) -> None:
    """Append the nest of `roots` to `out` and record where its results are found.

    `fetches` are the rows that it asks for, for who comes after it. A detour, which runs only
    where memory overlaps, is not reported; what is rare runs where a mask hides a part, or where a
    product could not store its sums itself.
    """
    fresh = {root.values[0] for root in roots if root.kind is RootKind.MATERIALIZE}
    body = survey(lowering.bufferization, roots, fresh)
    lane_dim = choose_lane_dim(lowering, roots, body)
    space = roots[0].space
    lanes = 1 if lane_dim is None else choose_lanes(lowering, space[lane_dim], body)
    if lanes == 1:
        lane_dim = None
    block = Block()
    emit = Emitter(block, roots[0].op.location)
    nest = Nest(
        lowering, roots, body, lane_dim, lanes, Evaluator(lowering, emit, lanes, fresh=fresh)
    )
    nest.body = body = _relabelled(nest)
    flag = _guard_stores(nest)
    if lane_dim is not None and body.num_ops <= _MAX_DOUBLED_OPS and _is_split(nest, is_rare):
        nest.prefixes = _usable_prefixes(nest)
    if lane_dim is not None and space[lane_dim] >= _MIN_CHUNKS * lanes:
        nest.streams = not _is_redirected(nest) and streaming.is_stream(nest.ev, roots, body)
    for root in roots:
        elements.prepare(nest.ev, root)
    nest.fold_end = _fold_end(nest)
    if fetches and lane_dim is not None:
        nest.fetcher = Fetcher(nest.ev, block, fetches)
    _emit_loops(nest)
    _finish(nest, out, block, flag)
    if not is_detour:
        lowering.report.nests.append(summary_of(nest, is_rare))


def _is_split(nest: Nest, is_rare: bool) -> bool:
    """Whether chunks that no mask hides anything of have code of their own."""
    assert nest.lane_dim is not None
    num_chunks = nest.space[nest.lane_dim] // nest.lanes
    if is_rare or num_chunks >= _MIN_CHUNKS:
        return num_chunks >= _MIN_CHUNKS
    if num_chunks < 2 and nest.fold_axis is not None:
        return False
    return prod(nest.space) >= _MIN_ROWS * nest.lanes * num_chunks


def _usable_prefixes(nest: Nest) -> tuple[Prefix, ...]:
    """The masks that split the lane loop: none if they change inside of it, along a fold."""
    prefixes = find_prefixes(nest.ev, nest.body.accesses) or ()
    inner = None if nest.fold_axis == nest.lane_dim else nest.fold_axis
    moving = {
        prefix
        for prefix in prefixes
        if any(loop == inner for coord in prefix.coords for loop, _ in coord.terms)
    }
    if any(prefix.loop is not None for prefix in moving):
        return ()
    return tuple(prefix for prefix in prefixes if prefix not in moving)


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
    return replace(nest.body, accesses=accesses)


def _emit_loops(nest: Nest) -> None:
    """The outer loops around whatever happens along lanes and fold axis."""
    axis = nest.fold_axis
    outer = [
        dim
        for dim, size in enumerate(nest.space)
        if size > 1 and dim != nest.lane_dim and dim != axis
    ]
    loop_over(nest, outer, lambda: _emit_inner(nest, axis))


def _emit_inner(nest: Nest, axis: int | None) -> None:
    if axis is None:
        factor = row_factor(nest)
        if factor is None:
            _emit_chunks(nest)
        else:
            where_it_changes(nest, factor, lambda: _emit_chunks(nest))
    elif axis == nest.lane_dim:
        _fold_lanes(nest)
    else:
        for chunk in lane_chunks(nest):
            in_chunk(nest, chunk, lambda: _fold_axis(nest, axis))


def _emit_chunks(nest: Nest) -> None:
    """The vectors of a row in which nothing is folded."""
    for chunk in lane_chunks(nest):
        in_chunk(nest, chunk, lambda: _do_body(nest))


def _emit_body(nest: Nest, coords: Coords) -> Values:
    """Evaluate everything at one element or vector, then write; the values that folds take.

    All loads of the chunk come before its first store: a root may update in place.
    """
    ev = nest.ev
    taken: Values = []
    writes: list[Callable[[], None]] = []
    for root in nest.roots:
        if root.kind in (RootKind.REDUCE, RootKind.SCAN):
            taken += [ev.lanes_of_element(value, coords) for value in root.values]
        elif root.kind is RootKind.STORE:
            value = ev.element(root.values[1], coords)
            writes.append(lambda r=root, v=value: _write_store(nest, r, coords, v))
        elif root.kind is RootKind.UPDATE:
            writes.append(lambda r=root: update(ev, r.op, coords))
        else:
            writes += elements.evaluate(ev, root, coords)
    for write in writes:
        write()
    if nest.fetcher is not None:
        nest.fetcher.emit()
    return taken


def _do_body(nest: Nest) -> None:
    """A body in which nothing is folded."""
    taken = _emit_body(nest, nest.coords())
    assert not taken


def _write_store(nest: Nest, root: Root, coords: Coords, value: SSAValue) -> None:
    redirect = nest.redirects.get(root)
    if redirect is None and root in nest.aside:
        nest.ev.write_buffer(nest.aside[root], coords, value)
        return
    store(nest.ev, root.op, coords, value, redirect)


def _split_by_root(
    nest: Nest, values: Values, count_of: Callable[[Root], int] = lambda root: len(root.values)
) -> list[tuple[Root, Values]]:
    result = []
    for root in nest.roots:
        if root.kind in (RootKind.REDUCE, RootKind.SCAN):
            count = count_of(root)
            result.append((root, values[:count]))
            values = values[count:]
    return result


def _combine(nest: Nest, left: Values, right: Values) -> Values:
    result: Values = []
    sides = zip(_split_by_root(nest, left), _split_by_root(nest, right), strict=True)
    for (root, a), (_, b) in sides:
        result += combining.apply_combine(nest.ev.emit, root.op, a, b)
    return result


def _num_carried(root: Root) -> int:
    return extremes.num_accumulators(root.op)


def _advance(nest: Nest, carried: Values, taken: Values) -> Values:
    """The accumulators that began with `_initial`, with one more vector."""
    result: Values = []
    sides = zip(
        _split_by_root(nest, carried, _num_carried), _split_by_root(nest, taken), strict=True
    )
    for (root, accumulators), (_, vectors) in sides:
        result += extremes.advance(nest.ev.emit, root.op, accumulators, vectors)
    return result


def _folded(nest: Nest, carried: Values) -> Values:
    """What the accumulators that began with `_initial` say at the end."""
    result: Values = []
    for root, accumulators in _split_by_root(nest, carried, _num_carried):
        result += extremes.finish(nest.ev.emit, root.op, accumulators)
    return result


def _initial(nest: Nest, lanes: int) -> Values | None:
    result: Values = []
    for root in nest.roots:
        if root.kind is RootKind.REDUCE:
            types = [element_of(value.type) for value in root.values]
            start = extremes.initial(nest.ev.emit, root.op, lanes, types)
            if start is None:
                return None
            result += start
    return result


def _fold_lanes(nest: Nest) -> None:
    """Reduce along the lanes: vector accumulators, folded to scalars at the end.

    Functions that may not commute fold each vector to a scalar, which the loop accumulates.
    """
    in_order = any(isinstance(root.op, CombineOp) and not commutes(root.op) for root in nest.roots)
    total: Values | None = None
    for chunk in lane_chunks(nest):
        scalars = _fold_vectors(nest, _fold_chunk(nest, chunk, in_order), in_order)
        total = scalars if total is None else _combine(nest, total, scalars)
    assert total is not None
    nest.ev.enter_chunk(1)
    for root, values in _split_by_root(nest, total):
        _write_fold(nest, root, values)


def _fold_vectors(nest: Nest, vectors: Values, in_order: bool) -> Values:
    """What the lanes of each vector fold to; scalars stay as they are."""
    scalars: Values = []
    for root, values in _split_by_root(nest, vectors):
        scalars += combining.reduce_lanes(nest.ev.emit, root.op, values, in_order)
    return scalars


def _fold_chunk(nest: Nest, chunk: tuple[int, int, int], in_order: bool) -> Values:
    """What a run of vectors folds to: one vector, or with `in_order` its scalar."""
    (start, count, lanes), emit, ev = chunk, nest.ev.emit, nest.ev

    def take() -> Values:
        taken = _emit_body(nest, nest.coords())
        return _fold_vectors(nest, taken, in_order) if in_order else taken

    ev.enter_chunk(lanes)
    accumulators = _initial(nest, lanes) if count > 1 else None
    first, combine = start, _combine if accumulators is None else _advance
    if nest.fold_end is not None and accumulators is not None:
        size = start + count * lanes
        extent = nest.fold_end.extent(ev, size)
        accumulators = nest.fold_end.initial(ev, nest.roots, extent, size)
    if accumulators is None:
        ev.variables[LANE_LOOP] = start
        accumulators = take()
        first, count = start + lanes, count - 1
    if count == 0:
        return accumulators
    for run in runs(nest, (first, count, lanes)):
        enter_run(nest, run, lanes)
        variable, carried = emit.open_loop([value.type for value in accumulators])
        ev.variables[LANE_LOOP] = variable
        folded = combine(nest, carried, take())
        if run.is_full:
            fetch_ahead(ev, nest.body.accesses)
        bounds = (run.first, run.last, lanes)
        accumulators = list(emit.close_loop(bounds, accumulators, folded))
    return accumulators if combine is _combine else _folded(nest, accumulators)


def _fold_axis(nest: Nest, axis: int) -> None:
    """Reduce or scan along an axis that is not the lanes': one accumulator per lane."""
    if nest.roots[0].kind is RootKind.SCAN:
        emit_scan(nest, axis, lambda coords: _emit_body(nest, coords))
        return
    ev, emit, size = nest.ev, nest.ev.emit, nest.space[axis]
    accumulators = None if size == 1 else _initial(nest, ev.lanes)
    first, combine = 0, _combine if accumulators is None else _advance
    last: int | SSAValue = size
    if accumulators is None:
        accumulators = _emit_body(nest, _at(nest, axis, ORIGIN))
        first = 1
    elif nest.fold_end is not None:
        last = nest.fold_end.extent(ev, size)
        accumulators = nest.fold_end.initial(ev, nest.roots, last, size)
    if first < size:
        variable, carried = emit.open_loop([value.type for value in accumulators])
        ev.variables[axis] = variable
        if not first and nest.fold_end is not None:
            assume(ev, nest.fold_end.prefixes)
        folded = combine(nest, carried, _emit_body(nest, _at(nest, axis, loop_coord(axis))))
        fetch_rows(ev, nest.body.accesses, axis, size)
        accumulators = list(emit.close_loop((first, last, 1), accumulators, folded))
    if combine is _advance:
        accumulators = _folded(nest, accumulators)
    for root, values in _split_by_root(nest, accumulators):
        _write_fold(nest, root, values)


def _at(nest: Nest, axis: int, step: Coord) -> Coords:
    """The index of the innermost body with `step` along `axis`."""
    coords = list(nest.coords())
    coords[axis] = step
    return tuple(coords)


def _write_fold(nest: Nest, root: Root, values: Values) -> None:
    axis = root.axis
    assert axis is not None
    coords = nest.coords()
    kept = (*coords[:axis], *coords[axis + 1 :])
    for result, value in zip(root.op.results, values, strict=True):
        if is_tile(result):
            nest.ev.write_buffer(nest.lowering.buffer(result), kept, value)
        else:
            nest.scalars.append((result, value))


def _finish(nest: Nest, out: Block, block: Block, flag: SSAValue | None) -> None:
    """Close the region, append the nest, and copy redirected stores to their place."""
    outputs = [value for _, value in nest.scalars]
    if flag is not None:
        outputs.append(flag)
    location = nest.roots[0].op.location
    block.add_op(build(NestYieldOp, outputs, location=location))
    properties: dict[str, Attribute] = {
        "bounds": DenseArrayBase.from_list(i64, list(nest.space)),
        "vector": IntegerAttr(nest.lanes, i64),
        "summary": StringAttr(", ".join(names_of(nest))),
    }
    types = [value.type for value in outputs]
    op = build(NestOp, (), types, properties, (Region(block),), location)
    out.add_op(op)
    results = zip(nest.scalars, op.results[: len(nest.scalars)], strict=True)
    nest.lowering.define({value: result for (value, _), result in results})
    if nest.aside:
        _copy_back(nest, out, op.results[-1] if flag is not None else None)


def _copy_back(nest: Nest, out: Block, flag: SSAValue | None) -> None:
    if flag is None:
        for root, buffer in nest.aside.items():
            _emit_copy(nest, out, root, buffer)
        return
    then, otherwise = Block(), Block()
    location = nest.roots[0].op.location
    for root, buffer in nest.aside.items():
        _emit_copy(nest, otherwise, root, buffer)
    then.add_op(build(YieldOp, location=location))
    otherwise.add_op(build(YieldOp, location=location))
    assert flag.type == i1
    out.add_op(build(IfOp, (flag,), (), None, (Region(then), Region(otherwise)), location))


def _emit_copy(nest: Nest, out: Block, root: Root, buffer: Buffer) -> None:
    """A small nest that moves a redirected store's values from the arena to memory."""
    block = Block()
    ev = Evaluator(nest.lowering, Emitter(block, root.op.location), nest.lanes)
    copy = Nest(nest.lowering, [root], nest.body, nest.lane_dim, nest.lanes, ev)

    def body() -> None:
        coords = copy.coords()
        store(ev, root.op, coords, ev.read_buffer(buffer, coords, ev.lanes > 1))

    dims = [d for d, size in enumerate(copy.space) if size > 1 and d != copy.lane_dim]

    def chunks_of_lanes() -> None:
        for chunk in lane_chunks(copy):
            in_chunk(copy, chunk, body)

    loop_over(copy, dims, chunks_of_lanes)
    block.add_op(build(NestYieldOp, location=root.op.location))
    properties: dict[str, Attribute] = {
        "bounds": DenseArrayBase.from_list(i64, list(copy.space)),
        "vector": IntegerAttr(copy.lanes, i64),
        "summary": StringAttr("copy of redirected store"),
    }
    out.add_op(build(NestOp, (), (), properties, (Region(block),), root.op.location))
