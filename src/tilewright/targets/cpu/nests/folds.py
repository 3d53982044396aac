"""Emits the folds of a nest: along its lanes, or along another axis."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from tilewright.analysis.commutation import commutes
from tilewright.ir.types import element_of
from tilewright.ops.reduction.ir import CombineOp
from tilewright.targets.cpu.nests import combining, extremes
from tilewright.targets.cpu.nests.bodies import Values, emit_body
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP, ORIGIN, Coord, Coords, loop_coord
from tilewright.targets.cpu.nests.fetching_ahead import fetch_ahead, fetch_rows
from tilewright.targets.cpu.nests.full_chunks import assume
from tilewright.targets.cpu.nests.lane_loops import Nest, enter_run, lane_chunks, runs
from tilewright.targets.cpu.nests.scans import emit_scan
from tilewright.targets.cpu.schedule.inline import is_tile
from tilewright.targets.cpu.schedule.roots import Root, RootKind


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


def fold_lanes(nest: Nest) -> None:
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
        taken = emit_body(nest, nest.coords())
        return _fold_vectors(nest, taken, in_order) if in_order else taken

    ev.enter_chunk(lanes)
    accumulators = _initial(nest, lanes) if count > 1 else None
    first, combine = start, _combine if accumulators is None else _advance
    if nest.fold_end is not None and accumulators is not None:
        size = start + count * lanes
        end = nest.fold_end.end(ev, size)
        accumulators = nest.fold_end.initial(ev, nest.roots, end, size)
    if accumulators is None:
        ev.variables[LANE_LOOP] = start
        accumulators = take()
        first, count = start + lanes, count - 1
    if count == 0:
        return accumulators
    all_runs = runs(nest, (first, count, lanes))
    for run in all_runs:
        enter_run(nest, run, lanes)
        variable, carried = emit.open_loop([value.type for value in accumulators])
        ev.variables[LANE_LOOP] = variable
        folded = combine(nest, carried, take())
        if run.is_full:
            fetch_ahead(ev, nest.body.accesses)
        bounds = (run.first, run.last, lanes)
        accumulators = list(emit.close_loop(bounds, accumulators, folded))
    _fill(nest, all_runs[-1].last, first + count * lanes, lanes)
    return accumulators if combine is _combine else _folded(nest, accumulators)


def _fill(nest: Nest, first: int | SSAValue, last: int, lanes: int) -> None:
    """Write the tiles of a nest behind the chunks that its folds take."""
    if nest.fold_end is None or not nest.fold_end.filled or isinstance(first, int):
        return
    nest.ev.enter_chunk(lanes)
    variable, _ = nest.ev.emit.open_loop()
    nest.ev.variables[LANE_LOOP] = variable
    nest.fold_end.fill(nest.ev, nest.coords())
    nest.ev.emit.close_loop((first, last, lanes))


def fold_axis(nest: Nest, axis: int) -> None:
    """Reduce or scan along an axis that is not the lanes': one accumulator per lane."""
    if nest.roots[0].kind is RootKind.SCAN:
        emit_scan(nest, axis, lambda coords: emit_body(nest, coords))
        return
    ev, emit, size = nest.ev, nest.ev.emit, nest.space[axis]
    accumulators = None if size == 1 else _initial(nest, ev.lanes)
    combine = _combine if accumulators is None else _advance

    def take(
        first: int | SSAValue, last: int | SSAValue, accumulators: Values, is_rest: bool = False
    ) -> Values:
        variable, carried = emit.open_loop([value.type for value in accumulators])
        ev.variables[axis] = variable
        folded = combine(nest, carried, emit_body(nest, _at(nest, axis, loop_coord(axis))))
        if not is_rest:
            fetch_rows(ev, nest.body.accesses, axis, size)
        return list(emit.close_loop((first, last, 1), accumulators, folded))

    if accumulators is None:
        accumulators = emit_body(nest, _at(nest, axis, ORIGIN))
        accumulators = take(1, size, accumulators) if size > 1 else accumulators
    elif nest.fold_end is None:
        accumulators = take(0, size, accumulators)
    else:
        extent, end = nest.fold_end.extent(ev, size), nest.fold_end.end(ev, size)
        accumulators = nest.fold_end.initial(ev, nest.roots, end, size)
        assume(ev, nest.fold_end.prefixes)
        accumulators = take(0, extent, accumulators)
        if nest.fold_end.may_wrap(ev):
            # Here the masks are asked; what the lanes are limited to stays.
            limit = ev.limit
            ev.enter_chunk(ev.lanes)
            ev.limit = limit
            accumulators = take(extent, end, accumulators, is_rest=True)
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
