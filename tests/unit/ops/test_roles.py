"""Roles and rings at T2: their text, what is refused, and what the interpreter finds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.role_programs import WIDTH, Pipeline, located, parsed, run, text
from tilewright.interp.evaluate import run_kernel
from tilewright.interp.simt.faults import SharedRace
from tilewright.ir.text import print_module
from tilewright.support.errors import (
    DataRace,
    Deadlock,
    KernelFault,
    MalformedText,
    UninitializedRead,
)
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_text_of_roles_round_trips(replicas: int) -> None:
    printed = print_module(parsed(text(Pipeline(replicas=replicas))))
    assert print_module(parsed(printed)) == printed
    assert '"tw.roles"' in printed and printed.count('"ttg.ring_') == 4


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("replicas", [1, 2])
def test_every_number_of_tiles_goes_through_a_ring(slots: int, replicas: int) -> None:
    for count in sorted({0, 1, slots - 1, slots, slots + 1, 2 * slots + 1}):
        out, x = run(Pipeline(slots=slots, replicas=replicas), count)
        expected = 2 * x if count else np.zeros_like(x)
        np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_without_positions_a_role_goes_through_the_slots_in_turn(count: int) -> None:
    program = Pipeline(slots=2, replicas=2, has_positions=False)
    assert "%fill)" not in text(program).split("ring_acquire")[1].split("\n")[0]
    out, x = run(program, count)
    expected = 2 * x if count else np.zeros_like(x)
    np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


def test_a_slot_that_is_never_released_is_a_deadlock_that_says_who_waits() -> None:
    with pytest.raises(Deadlock, match=r"load waits for phase 0 of empty\[0\] of ring ab"):
        run(Pipeline(releases="never"), 5)


def test_a_slot_that_is_never_committed_is_a_deadlock_of_both() -> None:
    with pytest.raises(Deadlock, match=r"load waits .*; math waits for phase 0 of full\[0\]"):
        run(Pipeline(commits=False), 5)


def test_a_count_of_consumers_that_is_too_great_is_a_deadlock() -> None:
    with pytest.raises(Deadlock, match="load waits for phase 0 of empty"):
        run(Pipeline(consumers=2), 5)


def test_a_count_of_consumers_that_is_too_small_is_noticed() -> None:
    with pytest.raises(KernelFault, match="is in phase 2: by parity it takes"):
        run(Pipeline(replicas=2, consumers=1), 5)


def test_a_slot_that_is_released_before_it_is_read_is_a_race() -> None:
    with pytest.raises(SharedRace, match=r"for which load did not wait|for which math did not"):
        run(Pipeline(releases="before"), 7)


def test_a_producer_that_does_not_acquire_overwrites_what_is_read() -> None:
    with pytest.raises(SharedRace):
        run(Pipeline(acquires=False, releases="never"), 5)


def test_a_consumer_that_does_not_wait_reads_what_is_not_told() -> None:
    with pytest.raises((DataRace, UninitializedRead)):
        run(Pipeline(waits=False), 3)


def test_a_phase_that_is_always_the_same_is_a_race() -> None:
    with pytest.raises(SharedRace, match="writes to what was written"):
        run(Pipeline(fill_step=0), 9)


@pytest.mark.parametrize("change", [{"fill_step": 2}, {"first_fill": 2}])
def test_a_fill_that_is_counted_wrong_is_noticed(change: dict[str, int]) -> None:
    with pytest.raises(KernelFault, match="by parity it takes that for another one"):
        run(Pipeline(**change), 9)


@pytest.mark.parametrize("tiles", [4, 5])
def test_roles_need_not_run_in_step(tiles: int) -> None:
    """With more slots than tiles the producer is done before a consumer begins."""
    out, x = run(Pipeline(slots=8), tiles)
    np.testing.assert_array_equal(out[0], 2 * x)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('roles = ["load", "math"]', 'roles = ["load", "load"]', "two roles of one name"),
        ('roles = ["load", "math"]', 'roles = ["load"]', "another number of roles"),
        ("warps = array<i32: 1, 1>", "warps = array<i32: 1, 3>", "math has 3 warps"),
        ("producers = 1", "producers = 0", "producers is 0"),
        ("^bb0(%r: i32):", "^bb0(%r: i64):", "a region takes the number of its replica"),
        (
            '"tt.return"() : () -> ()',
            '%z = "arith.addi"(%one, %one) : (i32, i32) -> i32\n"tt.return"() : () -> ()',
            "the program goes on behind its roles",
        ),
        (
            '"ttg.ring_commit"(%ring, %s) : (!ttg.ring, i32)',
            '"ttg.ring_commit"(%ring, %long) : (!ttg.ring, i64)',
            "slot and fill are i32",
        ),
    ],
)
def test_roles_that_do_not_fit_are_refused(old: str, new: str, what: str) -> None:
    source = text(Pipeline())
    assert old in source
    source = source.replace(old, new, 1).replace(
        '%one = "arith', '%long = "arith.constant"() <{value = 0 : i64}> : () -> i64\n%one = "arith'
    )
    with pytest.raises(MalformedText, match=what):
        parsed(source)


def test_a_wait_that_no_role_can_end_is_a_deadlock() -> None:
    source = text(Pipeline())
    start, end = source.index('  "tw.roles"'), source.index('  "tt.return"')
    (wait,) = [line for line in source.splitlines() if "ttg.ring_wait" in line]
    alone = wait.replace("%s, %fill", "%zero, %zero")
    module = located(parsed(source[:start] + alone + "\n" + source[end:]))
    arrays = [np.zeros(WIDTH, np.int32), np.zeros(WIDTH, np.int32)]
    with pytest.raises(Deadlock, match=r"nobody else ends phase 0 of full\[0\] of ring ab"):
        run_kernel(module, [*arrays, 1], (1,), rules=NVIDIA_INTERPRETATION)


def test_every_program_of_a_grid_has_roles_of_its_own() -> None:
    module = located(parsed(text(Pipeline())))
    x = np.arange(5 * WIDTH, dtype=np.int32)
    out = np.zeros(5 * WIDTH, np.int32)
    run_kernel(module, [x, out, 5], (3,), rules=NVIDIA_INTERPRETATION, races=False)
    np.testing.assert_array_equal(out, 2 * x)
