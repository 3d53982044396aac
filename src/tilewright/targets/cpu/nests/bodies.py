"""Emits the body of a nest: everything at one element or vector."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.ir import SSAValue

from tilewright.targets.cpu.nests import elements
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.full_chunks import mask_of
from tilewright.targets.cpu.nests.lane_loops import Nest
from tilewright.targets.cpu.nests.masks import is_all_true
from tilewright.targets.cpu.nests.pieces import Cut, Pieces
from tilewright.targets.cpu.nests.piecewise import are_long, find_pieces, is_whole
from tilewright.targets.cpu.nests.repeated import repeated_cut
from tilewright.targets.cpu.nests.stores import choose, store
from tilewright.targets.cpu.nests.updates import update
from tilewright.targets.cpu.schedule.roots import Root, RootKind

# Chosen, not measured: it bounds the code, which is emitted twice.
_MAX_DOUBLED_OPS = 80

Values = list[SSAValue]
"""The values that folds take of one element or vector."""


def emit_body(nest: Nest, coords: Coords) -> Values:
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


def do_body(nest: Nest) -> None:
    """A body in which nothing is folded.

    Where several loads are by pieces, one test tells of all of them whether a piece ends between
    the lanes.
    """
    ev, cuts = nest.ev, () if nest.cuts else _shared_cuts(nest)
    if not cuts:
        emit_body(nest, nest.coords())
        return
    among = frozenset(cuts)
    either = [partial(_do_body, nest, (whole, among)) for whole in (True, False)]
    choose(ev, is_whole(ev, cuts), *either)


def _do_body(nest: Nest, is_whole: tuple[bool, frozenset[Cut]]) -> None:
    nest.ev.is_whole = is_whole
    emit_body(nest, nest.coords())
    nest.ev.is_whole = None


def _shared_cuts(nest: Nest) -> tuple[Cut, ...]:
    """The cuts of two loads by pieces or more, in a short body that no mask hides a part of."""
    ev, body = nest.ev, nest.body
    if ev.lanes == 1 or body.num_ops > _MAX_DOUBLED_OPS:
        return ()
    masks = [mask_of(access.op) for access in body.accesses]
    if not ev.assumed and not all(map(is_all_true, masks)):
        return ()
    pieces = loads_by_pieces(nest)
    cuts = tuple(dict.fromkeys(cut for each in pieces for cut in each.cuts))
    return cuts if len(pieces) > 1 else ()


def loads_by_pieces(nest: Nest) -> list[Pieces]:
    """The pieces of a nest's loads that are done piece by piece."""
    found = [
        find_pieces(nest.ev, access.value, access.coords)
        for access in nest.body.accesses
        if access.op is not None and not access.is_store
    ]
    long = (each for each in found if each is not None and are_long(each))
    return [each for each in long if repeated_cut(nest.ev, each) is None]


def _write_store(nest: Nest, root: Root, coords: Coords, value: SSAValue) -> None:
    redirect = nest.redirects.get(root)
    if redirect is None and root in nest.aside:
        nest.ev.write_buffer(nest.aside[root], coords, value)
        return
    store(nest.ev, root.op, coords, value, redirect)
