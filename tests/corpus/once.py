"""Runs of a case that many tests compare with, made once in a process."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from tests.corpus.case import Array, Case

Run = Callable[[Case], dict[str, Array]]


def once(run: Run) -> Run:
    """A way to run a case that keeps what it found; the arrays cannot be written."""
    found: dict[int, tuple[Case, dict[str, Array]]] = {}

    @wraps(run)
    def kept(case: Case) -> dict[str, Array]:
        if id(case) not in found:
            arrays = run(case)
            for array in arrays.values():
                array.flags.writeable = False
            found[id(case)] = case, arrays
        return found[id(case)][1]

    return kept
