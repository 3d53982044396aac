"""Checks that configurations of one kernel leave the same arrays behind, before they are timed.

An array is anything with the methods of a NumPy array or of a torch tensor; nothing is imported
to tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, cast

from tilewright.runtime.snapshots import ArgumentPath, Restore, base_array, save, value_at


class _Array(Protocol):
    """What NumPy's arrays and torch's tensors share, as far as it is used here."""

    def __eq__(self, other: object) -> _Array: ...  # type: ignore[override]  # element by element
    def __ne__(self, other: object) -> _Array: ...  # type: ignore[override]  # element by element
    def __sub__(self, other: _Array) -> _Array: ...
    def __and__(self, other: _Array) -> _Array: ...
    def __or__(self, other: _Array) -> _Array: ...
    def __abs__(self) -> _Array: ...
    def __lt__(self, other: float) -> _Array: ...
    def __getitem__(self, index: _Array) -> _Array: ...
    def __len__(self) -> int: ...
    def max(self) -> float: ...
    def reshape(self, shape: int) -> _Array: ...


class ResultCheck:
    """What the first configuration left in the arrays that it wrote, for others to be held to.

    An element may differ by `tolerance` times the largest magnitude of its array. Before a run
    the arrays are as `keep` found them, so that what a configuration fails to write shows.
    """

    def __init__(self, arguments: Mapping[str, object], tolerance: float) -> None:
        self._arguments = arguments
        self._tolerance = tolerance
        self._restores: dict[tuple[str | int, ...], Restore] = {}
        self._expected: dict[tuple[str | int, ...], _Array] = {}

    def keep(self, writes: Iterable[ArgumentPath]) -> None:
        """Keep the arrays at these paths as they are now; each is kept once."""
        for path in map(tuple, writes):
            restore = save(value_at(path, self._arguments)) if path not in self._restores else None
            if restore is not None:
                self._restores[path] = restore

    def run(self, launch: Callable[[], object]) -> str:
        """Launch once; what is wrong with what it leaves, "" where nothing is."""
        for restore in self._restores.values():
            restore()
        launch()
        found = {path: _wide(value_at(path, self._arguments)) for path in self._restores}
        if not self._expected:
            self._expected = found
            return ""
        for path, values in found.items():
            difference, scale = _difference(values, self._expected[path])
            if not difference <= self._tolerance * scale:
                name = ".".join(map(str, path))
                share = difference / scale if scale else math.inf
                return f"`{name}` differs from that of the first configuration by {share:.2g}"
        return ""


def _wide(value: object) -> _Array:
    """The elements of an array as float64, in memory of their own."""
    array = base_array(value)
    to_double = getattr(array, "double", None)
    if to_double is not None:
        wide = to_double().detach()
        return cast("_Array", wide.clone().reshape(-1))
    as_type = cast("Callable[[str], _Array]", getattr(array, "astype", None))
    return as_type("float64").reshape(-1)


def _difference(found: _Array, expected: _Array) -> tuple[float, float]:
    """The largest difference of two elements, and the largest finite magnitude expected."""
    # Two that are no numbers are the same; nothing else that is none is.
    is_number = (found == found) | (expected == expected)
    differs = (found != expected) & is_number
    distance = abs(found[differs] - expected[differs])
    magnitude = abs(expected)
    finite = magnitude[magnitude < math.inf]
    return _largest(distance), _largest(finite)


def _largest(values: _Array) -> float:
    return float(values.max()) if len(values) else 0.0
