"""What a launch finds out about numbers holds in every program and iteration."""

from __future__ import annotations

import json
from itertools import product
from random import Random

import pytest

from tilewright.runtime.launch_numbers import (
    LaunchConditions,
    LaunchGuard,
    LaunchNumber,
    bounds_of,
    evaluate,
    fits,
    guards_to_metadata,
    operands_of,
)

GRID = (3, 2, 2)
BINARY = ("add", "sub", "mul", "div", "rem", "min", "max")
WIDTH, ROWS = ("slot", 0, 32), ("slot", 1, 32)


class Wrapped(Exception):
    """A number of a loop that counts past its type."""


def number(rng: Random, depth: int) -> LaunchNumber:
    """A random number of two arguments, the program, how many there are, and loops."""
    if depth == 0 or rng.random() < 0.2:
        axis = rng.randint(0, 2)
        leaves = (WIDTH, ROWS, ("constant", rng.randint(-9, 9)), ("program", axis))
        return rng.choice((*leaves, ("programs", axis)))
    if rng.random() < 0.15:
        step = rng.choice((("constant", rng.randint(1, 4)), ("programs", rng.randint(0, 2))))
        return ("count", 32, number(rng, depth - 1), number(rng, depth - 1), step)
    if rng.random() < 0.15:
        inner = number(rng, depth - 1)
        return rng.choice((("signed", 8, inner), ("unsigned", 8, ("signed", 8, inner))))
    bits = rng.choice((8, 32, 64))
    return (rng.choice(BINARY), bits, number(rng, depth - 1), number(rng, depth - 1))


def values_of(found: LaunchNumber, slots: list[int], programs: tuple[int, ...]) -> set[int]:
    """All that a number comes to in one program, by trying every iteration."""
    kind, first = found[:2]
    if kind in ("slot", "constant"):
        return {evaluate(found, slots)}
    if kind in ("program", "programs"):
        assert isinstance(first, int), "an axis"
        return {programs[first] if kind == "program" else GRID[first]}
    operands = [thinned(values_of(part, slots, programs)) for part in operands_of(found)]
    if kind == "count":
        runs = (range(*bounds) for bounds in product(*operands))
        return {value for run in runs for value in run}
    results = set[int]()
    for combination in product(*operands):
        parts = [("constant", value) for value in combination]
        results.add(evaluate((kind, first, *parts), slots))  # type: ignore[arg-type]
    return results


def thinned(values: set[int], most: int = 100) -> list[int]:
    """At most about so many of the values, the least and the most among them."""
    ordered = sorted(values)
    return [*ordered[:: 1 + len(ordered) // most], *ordered[-1:]]


@pytest.mark.parametrize("seed", range(400))
def test_no_program_leaves_the_bounds(seed: int) -> None:
    rng = Random(seed)
    found = number(rng, 4)
    slots = [rng.randint(-20, 40), rng.randint(1, 300)]
    try:
        bounds = bounds_of(found, slots, GRID)
        seen = [values_of(found, slots, at) for at in product(*map(range, GRID))]
    except ZeroDivisionError:
        return
    for value in set[int]().union(*seen):
        assert bounds.low <= value <= bounds.high, found


def test_what_all_know_is_exact() -> None:
    tiles = ("div", 32, ("add", 32, ROWS, ("constant", 15)), ("constant", 16))
    assert bounds_of(tiles, [0, 100], GRID).low == bounds_of(tiles, [0, 100], GRID).high == 7


def test_the_number_of_a_group_of_programs_is_bounded() -> None:
    """Rows of programs in groups: the last group may be smaller, and never empty."""
    rows, columns, group = 7, 5, 4
    width = ("constant", group * columns)
    first = ("mul", 32, ("div", 32, ("program", 0), width), ("constant", group))
    size = ("min", 32, ("sub", 32, ("constant", rows), first), ("constant", group))
    column = ("div", 32, ("rem", 32, ("program", 0), width), size)
    found = bounds_of(column, [], (rows * columns, 1, 1))
    assert found.low == 0 and found.high < group * columns
    with pytest.raises(ZeroDivisionError):
        bounds_of(column, [], (rows * columns + group * columns, 1, 1))


@pytest.mark.parametrize(
    ("demand", "bound", "holds"),
    [
        ("multiple", 8, True),
        ("multiple", 16, False),
        ("at_least", 25, False),
        ("at_most", 24, True),
    ],
)
def test_a_guard_is_of_every_program(demand: str, bound: int, holds: bool) -> None:
    assert LaunchGuard(WIDTH, demand, bound).holds([24], GRID) is holds


def test_a_multiple_is_known_of_one_number_only() -> None:
    eights = ("mul", 32, ("program", 0), ("constant", 8))
    assert not LaunchGuard(eights, "multiple", 8).holds([], (2, 1, 1))
    assert LaunchGuard(eights, "multiple", 8).holds([], (1, 1, 1))


def test_what_may_divide_by_zero_does_not_hold() -> None:
    guard = LaunchGuard(("div", 32, ROWS, WIDTH), "at_least", 0)
    assert not guard.holds([0, 8], GRID) and guard.holds([2, 8], GRID)


def test_a_sum_that_may_wrap_does_not_hold() -> None:
    guard = LaunchGuard(("mul", 32, ("program", 0), WIDTH), "at_least", 0)
    assert guard.holds([1 << 20], GRID)
    assert not guard.holds([1 << 30], GRID)


def test_conditions_are_kept_apart_by_what_they_depend_on() -> None:
    guard = LaunchGuard(("mul", 32, ("program", 0), WIDTH), "at_most", 10)
    conditions = LaunchConditions([guard])
    assert conditions.slots == (0,) and conditions.is_of_grid
    for width, programs, holds in ((5, 3, True), (5, 4, False), (6, 3, False), (5, 3, True)):
        assert conditions.hold([width], (programs, 1, 1)) is holds


def test_guards_go_through_the_metadata() -> None:
    guard = LaunchGuard(("sub", 64, WIDTH, ROWS), "at_most", 0, "width is at most rows")
    metadata = json.loads(json.dumps({"launch_guards": guards_to_metadata([guard])}))
    assert fits(metadata, GRID, (3, 4)) and not fits(metadata, GRID, (5, 4))
    assert fits(metadata, (0, 1, 1), (5, 4)), "a grid without programs runs nothing"
    assert fits({}, GRID, (5, 4))
