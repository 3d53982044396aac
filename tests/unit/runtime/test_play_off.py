"""Candidates with close times are timed again in turn, and the fastest of those is taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from tilewright.runtime.call import Call
from tilewright.runtime.config import Config
from tilewright.runtime.play_off import Times, close_ones, timed_in_turn
from tilewright.runtime.tuning import Candidate, tune


def candidate(number: int, kernel: object) -> Candidate:
    """A candidate by its number, whose kernel is compiled already."""

    def nothing(*_: object) -> None:
        return None

    config = Config({"BLOCK": number})
    return Candidate(config, cast("Call", None), nothing, lambda: kernel, nothing, nothing, nothing)


class Card:
    """A GPU that is slower with each run until it is hot; `runs` says what ran."""

    def __init__(self, speeds: dict[int, float]) -> None:
        self._speeds = speeds
        self.runs: list[int] = []

    def time(self, each: Candidate, best_ms: float) -> Times:
        """What a candidate takes, in ms."""
        return self.again(each)

    def again(self, each: Candidate) -> Times:
        """The same."""
        number = each.config.kwargs["BLOCK"]
        assert isinstance(number, int)
        self.runs.append(number)
        taken = self._speeds[number] * (1 + min(len(self.runs), 4) * 0.02)
        return taken, taken, taken


def test_the_fastest_is_found_on_a_card_that_heats_up() -> None:
    speeds = {1: 1.00, 2: 0.99, 3: 0.98, 4: 2.0, 5: 0.97}
    kernels = [SimpleNamespace(hash=str(number)) for number in speeds]
    trials = [candidate(n, k) for n, k in zip(speeds, kernels, strict=True)]
    first = tune("kernel", trials, Card(speeds).time)
    assert first.best.config.kwargs["BLOCK"] == 1
    card = Card(speeds)
    found = tune("kernel", trials, card.time, again=card.again)
    assert found.best.config.kwargs["BLOCK"] == 5
    # The others keep their place: what was not close was not run again, and is not faster now.
    assert card.runs.count(4) == 1 and card.runs.count(5) == 4
    assert found.best.times_ms[0] == min(trial.times_ms[0] for trial in found.trials)


def test_one_that_is_far_ahead_is_not_timed_again() -> None:
    card = Card({1: 1.0, 2: 3.0})
    trials = [candidate(n, SimpleNamespace(hash=str(n))) for n in (1, 2)]
    found = tune("kernel", trials, card.time, again=card.again)
    assert card.runs == [1, 2] and found.best.config.kwargs["BLOCK"] == 1


@pytest.mark.parametrize(
    ("times", "close"),
    [([1.0, 1.05, 1.2], [0, 1]), ([2.0, 1.0, 1.01, 1.02, 1.03, 1.04], [1, 2, 3, 4]), ([], [])],
)
def test_the_first_few_by_time_are_close(times: list[float], close: list[int]) -> None:
    assert close_ones(times) == close


def test_times_are_those_of_the_rounds_by_what_was_before() -> None:
    rounds = iter([4.0, 8.0, 6.0, 6.0, 5.0, 4.0])

    def again(_: str) -> Times:
        taken = next(rounds)
        return taken, taken, taken

    found = timed_in_turn(["a", "b"], 2.5, again)
    assert found == [(2.5, 2.5, 2.5), (3.0, 3.0, 3.0)]
