"""Emits the body of a nest: everything at one element or vector."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from tilewright.targets.cpu.nests import elements
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.lane_loops import Nest
from tilewright.targets.cpu.nests.stores import store
from tilewright.targets.cpu.nests.updates import update
from tilewright.targets.cpu.schedule.roots import Root, RootKind

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
    """A body in which nothing is folded."""
    taken = emit_body(nest, nest.coords())
    assert not taken


def _write_store(nest: Nest, root: Root, coords: Coords, value: SSAValue) -> None:
    redirect = nest.redirects.get(root)
    if redirect is None and root in nest.aside:
        nest.ev.write_buffer(nest.aside[root], coords, value)
        return
    store(nest.ev, root.op, coords, value, redirect)
