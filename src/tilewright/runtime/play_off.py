"""The candidates of a tuning whose times are close, timed again in turn.

Candidates are timed one after the other, while a GPU heats up and lowers its clock: the first ones
look faster than they are. Those close to the fastest are timed again, one short time each in every
round, so that all of them have seen the same clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import TypeVar

Times = tuple[float, float, float]
_Candidate = TypeVar("_Candidate")

_CLOSE = 1.06
"""Times up to this many times the best one are close. Chosen, not measured: the clock of an H200
goes from 1980 to 1425 MHz as it heats up (2026-11-21), of which one tuning sees a part."""
# Chosen, not measured: an odd number for a median, and as many as a tuning of minutes can bear.
_ROUNDS, _MOST = 3, 4


def close_ones(times_ms: Sequence[float]) -> list[int]:
    """Which of some times are close to the least of them, it included: the first few by time."""
    least = min(times_ms, default=0.0)
    close = [index for index, time in enumerate(times_ms) if time <= _CLOSE * least]
    return sorted(close, key=lambda index: times_ms[index])[:_MOST]


def timed_in_turn(
    candidates: Sequence[_Candidate], before_ms: float, again: Callable[[_Candidate], Times]
) -> list[Times]:
    """The times of each candidate: the medians of what it took in each round.

    They are scaled so that the fastest one has taken `before_ms`: by those of all other
    candidates, which were timed before, none is faster.
    """
    rounds = [[again(candidate) for candidate in candidates] for _ in range(_ROUNDS)]
    found = [_medians(taken) for taken in zip(*rounds, strict=True)]
    least = min(times[0] for times in found)
    scale = before_ms / least if least > 0 else 1.0
    return [(scale * middle, scale * low, scale * high) for middle, low, high in found]


def _medians(taken: Sequence[Times]) -> Times:
    middle, low, high = (median(column) for column in zip(*taken, strict=True))
    return middle, low, high
