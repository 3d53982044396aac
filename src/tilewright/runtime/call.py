"""`Call`: the arguments and the grid of one launch of a tuned kernel."""

from __future__ import annotations

from tilewright.runtime.heuristics import Arguments, GridLike, Keywords
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Call:
    """Positional arguments, keywords, and the grid; None for a launcher that has its own."""

    args: Arguments
    kwargs: Keywords
    grid: GridLike
