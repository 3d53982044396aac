"""Shares of the time come to 100 %, and count what a loop holds as often as the loop runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.support.dataclass import replace
from tilewright.targets.cpu.estimate import Estimate
from tilewright.targets.cpu.report import Loop, NestReport, NestSummary, ProductSummary
from tilewright.targets.cpu.runtime.cycle_counts import PartCount
from tilewright.targets.cpu.time_shares import measured, whole_percents, wholes_of

NEST = NestSummary(("k.py:1",), (8,), 8, 0, ("tt.store",), (), 0, 0)
FOUR, OPEN = Loop("k.py:2", 1, 4), Loop("k.py:3", 2, None)


BATCH = ProductSummary(
    *("k.py:9", (8, 8, 8), ("f32", "f32"), "fused multiply-adds", "", "", (1, 8), False),
    time=Estimate(300, "arithmetic"),
    count=3,
)


def nest(cycles: int, loop: Loop | None = None, line: int = 1) -> NestSummary:
    time = Estimate(cycles, "memory")
    return replace(NEST, lines=(f"k.py:{line}",), time=time, loop=loop)


@given(st.lists(st.integers(0, 10**12), max_size=30))
def test_whole_percents_come_to_100_and_are_next_to_what_they_round(amounts: list[int]) -> None:
    percents, total = whole_percents(amounts), sum(amounts)
    assert sum(percents) == (100 if total else 0)
    for amount, percent in zip(amounts, percents, strict=True):
        assert abs(percent * total - 100 * amount) < max(total, 1)


def test_a_loop_of_known_length_counts_as_often_as_it_runs() -> None:
    inner = Loop("k.py:4", 3, 5, FOUR)
    report = NestReport((nest(60), nest(5, FOUR, 2), nest(1, inner, 4)), 0)
    (whole,) = wholes_of(report)
    assert (whole.loop, whole.cycles, whole.is_all) == (None, 60 + 4 * 5 + 20 * 1, True)
    assert [(share.runs, share.percent) for share in whole.shares] == [(1, 60), (4, 20), (20, 20)]


def test_a_step_of_a_loop_of_unknown_length_is_a_whole_of_its_own() -> None:
    inside = replace(FOUR, number=3, around=OPEN)
    report = NestReport((nest(10), nest(30, OPEN, 2), nest(5, inside, 3)), 0)
    outside, step = wholes_of(report)
    assert (outside.loop, outside.cycles, outside.is_all) == (None, 10, False)
    assert (step.loop, step.cycles, step.is_all) == (OPEN, 50, False)
    assert [share.percent for share in step.shares] == [60, 40]


def test_what_is_rare_takes_no_time_and_equal_nests_are_one_share() -> None:
    rare = replace(nest(99, None, 7), is_rare=True)
    (whole,) = wholes_of(NestReport((nest(2), rare, nest(2), nest(4, None, 3)), 0))
    assert [share.numbers for share in whole.shares] == [(1, 3), (4,)]
    assert [share.percent for share in whole.shares] == [50, 50]


def test_what_was_counted_has_shares_of_what_the_programs_took() -> None:
    rare = replace(nest(50, None, 7), is_rare=True)
    report = NestReport((nest(10), rare, nest(10), nest(8, OPEN, 3)), 0, (), (BATCH,))
    # Two programs; the loop ran 10 times in each, the batch of 3 once, what is rare never.
    counts = [(1000, 2), (100, 2), (0, 0), (300, 2), (200, 20), (300, 6)]
    found = measured(report, [PartCount(*each) for each in counts])
    assert (found.num_programs, found.cycles, found.elsewhere_percent) == (2, 500, 10)
    shown = [(s.numbers, s.runs, s.measured_cycles, s.measured_percent) for s in found.shares]
    assert shown == [((1, 3), 4, 400, 40), ((4,), 20, 200, 20), ((), 6, 300, 30)]
    # 40, 160 and 600 cycles.
    assert [share.percent for share in found.shares] == [5, 20, 75]


def test_a_part_without_counts_did_not_run() -> None:
    found = measured(NestReport((nest(10), nest(20, None, 2)), 0), [PartCount(8, 1)])
    assert (found.shares, found.elsewhere_percent) == ((), 100)
