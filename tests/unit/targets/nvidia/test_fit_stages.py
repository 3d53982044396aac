"""Loops have as many slots as fit beside what else shared memory holds, whatever is asked for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.persistent_kernels import TARGET
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.frontend.devices import DevicePlacement
from tilewright.ir.schedule import Anchor, Schedule
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import find_kernel
from tilewright.schedule.plan.loop_places import shortened
from tilewright.support.errors import SharedMemoryExceeded
from tilewright.targets.nvidia.host import named_machine

BF16 = np.dtype(ml_dtypes.bfloat16)


@tilewright.jit
def chain(
    a, b, v, out, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BY_ENGINE: tl.constexpr
):
    """Sums of products by what a product gives, transposed; each changes threads in the loop."""
    m, n, k, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, 64)
    keys = tl.make_tensor_descriptor(b, [steps * N, K], [K, 1], [N, K])
    x = tl.load(a + m[:, None] * K + k[None, :])
    acc = tl.zeros((N, 64), tl.float32)
    for step in range(steps):
        if BY_ENGINE:
            y = keys.load([step * N, 0]).T
        else:
            y = tl.load(b + step * N * K + n[:, None] * K + k[None, :]).T
        p = (tl.dot(x, y) % 4).to(x.dtype)
        w = tl.load(v + step * M * 64 + m[:, None] * 64 + d[None, :])
        acc = tl.dot(p.T, w, acc)
    tl.store(out + n[:, None] * 64 + d[None, :], acc)


def operands(m: int, n: int, k: int, steps: int) -> tuple[np.ndarray, ...]:
    """A, as many Bs and Vs as there are steps, and the sum that comes of them."""
    rng = np.random.default_rng(0)
    a, b, v = (rng.integers(0, 3, shape) for shape in ((m, k), (steps, n, k), (steps, m, 64)))
    expected = sum(((a @ b[i].T) % 4).T @ v[i] for i in range(steps))
    return a.astype(BF16), b.astype(BF16), v.astype(BF16), np.asarray(expected, np.float32)


def schedule_for(*sizes: int, **options: object) -> Schedule:
    """The schedule that `chain` is compiled with; `sizes` are M, N and K."""
    m, n, k = sizes
    a, b, v, out = operands(m, n, k, 3)
    asked = {"M": m, "N": n, "K": k, "BY_ENGINE": False, "num_consumer_groups": 0, **options}
    call = chain.specialize_call((a, b, v, out, 3), asked)
    place, machine = DevicePlacement("nvidia"), named_machine("sm_90a")
    request = make_request(call.source, call.specialization, call.options, place, machine)
    scheduled = to_schedule(request, TARGET, to_tiles(request, TARGET))
    schedule = schedule_of(find_kernel(scheduled.module))
    return Schedule() if schedule is None else schedule


@pytest.mark.parametrize("by_engine", [False, True], ids=["copied", "by_engine"])
@pytest.mark.parametrize(("columns", "asked"), [(128, 3), (128, 5), (256, 2), (256, 4)], ids=str)
@pytest.mark.parametrize("steps", [1, 4])
def test_what_is_asked_for_beyond_what_fits_computes_the_same(
    steps: int, columns: int, asked: int, by_engine: bool
) -> None:
    a, b, v, expected = operands(32, 256, columns, steps)
    out = np.zeros(expected.shape, np.float32)
    sizes = {"M": 32, "N": 256, "K": columns, "BY_ENGINE": by_engine, "num_stages": asked}
    bulk_access = "auto" if by_engine else "never"
    chain.simulate[(1,)](a, b, v, out, steps, **sizes, bulk_access=bulk_access)
    np.testing.assert_array_equal(out, expected)


def test_a_conversion_in_the_loop_takes_a_slot_and_the_schedule_says_so() -> None:
    schedule = schedule_for(32, 256, 128, num_stages=3)
    assert [channel.slots for channel in schedule.channels] == [2]
    assert "2 slots, not 3: shared memory has no room for more" in schedule.reasons[-1]


def test_what_fits_stays_as_it_is_asked_for() -> None:
    schedule = schedule_for(32, 128, 128, num_stages=3)
    assert [channel.slots for channel in schedule.channels] == [3]
    assert not any("no room" in reason for reason in schedule.reasons)


def test_a_loop_without_room_for_two_slots_runs_as_written() -> None:
    schedule = schedule_for(32, 256, 256, num_stages=2)
    assert not schedule.loops and not schedule.channels


def test_slots_of_an_authors_schedule_are_the_authors() -> None:
    text = (
        "ring r tiles load#1 load#2 slots 3 cp_async release wait; "
        "loop for#0 load#1 @0.0 load#2 @0.0 dot#0 @2.1 dot#1 @2.1"
    )
    with pytest.raises(SharedMemoryExceeded, match="the kernel needs"):
        schedule_for(32, 256, 128, schedule=text)


def test_products_that_run_on_stop_to_where_three_slots_are_left() -> None:
    late = parse_schedule(
        "ring r tiles load#0 load#1 slots 4 tma release late; "
        "loop for#0 load#0 @0.1 load#1 @0.1 dot#0 @2.0"
    )
    shorter = shortened(late)
    assert str(shorter) == (
        "ring r tiles load#0 load#1 slots 3 tma release wait; "
        "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1"
    )


def test_the_longest_loop_gives_up_its_slots_first_until_none_has_any() -> None:
    schedule: Schedule | None = parse_schedule(
        "ring r tiles load#0 slots 2 cp_async release wait; "
        "ring s tiles load#1 slots 3 cp_async release wait; "
        "loop for#0 load#0 @0.0 dot#0 @1.1; loop for#1 load#1 @0.0 dot#1 @2.1"
    )
    slots = []
    while schedule is not None:
        slots.append((schedule.slots_of(Anchor("for", 0)), schedule.slots_of(Anchor("for", 1))))
        schedule = shortened(schedule)
    assert slots == [(2, 3), (2, 2), (1, 2), (1, 1)]
