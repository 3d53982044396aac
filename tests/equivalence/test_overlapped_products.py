"""Products of two iterations that run at once compute the bits of one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.corpus.case import Array
from tests.corpus.forming import run_tiles
from tests.corpus.partitioned import ATTENTIONS, RINGS, Partitioned, attention_case
from tests.corpus.run import run_module
from tests.corpus.threads import run_plain_threads, run_threads
from tests.equivalence.test_rings import lowered, over, require_same
from tests.roles.test_formed_protocols import launches
from tilewright.ir.schedule_attributes import annotate_schedule, pipelining_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import find_kernel
from tilewright.ops.staging import DotWaitOp
from tilewright.schedule.protocol.run import run_protocol
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION

ORDERS = {
    "second": "{0} @0.0 {1} @1.1 rest @0.2",
    "first": "{0} @0.0 {1} @1.2 rest @1.1",
    "second, as an order": (
        "{0} @0.0 {1} @1.0 rest @0.0 order {0} {1} wait({0}) release(k) rest wait({1}) release(v)"
    ),
}
# No step, fewer steps than slots, as many, more; blocks that no length divides.
LENGTHS = [(0, False), (40, False), (64, False), (128, True), (200, False), (330, True)]
CASES = [Partitioned(attention_case(*shape), RINGS) for shape in LENGTHS]


def overlapped(case: Partitioned, order: str, replicas: int, slots: int) -> str:
    """The schedule of a case with the products of both of its loops a stage apart."""
    loops = [ORDERS[order].format(*dots) for dots in (("dot#0", "dot#1"), ("dot#2", "dot#3"))]
    return f"{case.text(replicas, slots=slots)}; loop for#0 {loops[0]}; loop for#1 {loops[1]}"


def orders() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("order", ORDERS)


@over(CASES)
@orders()
@pytest.mark.parametrize("level", ["T1", "T2"])
def test_the_interpreter_finds_the_bits_of_the_tiles(
    case: Partitioned, order: str, level: str
) -> None:
    for replicas, slots in ((1, 2), (2, 3)):
        module = lowered(case, overlapped(case, order, replicas, slots), level)
        # In each body the products run, and are waited for twice.
        assert sum(isinstance(op, DotWaitOp) for op in module.walk()) == 4
        require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), run_tiles(case.case))


def simulated(case: Partitioned, text: str) -> dict[str, Array]:
    schedule = parse_schedule(text)
    return run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))


@over(CASES[1:])
@pytest.mark.parametrize("order", ["second", "first"])
def test_threads_find_the_bits_of_one_program(case: Partitioned, order: str) -> None:
    require_same(simulated(case, overlapped(case, order, 2, 2)), run_plain_threads(case.case))


@over(CASES)
@orders()
@pytest.mark.parametrize("slots", [2, 3])
def test_rings_keep_to_their_protocol(case: Partitioned, order: str, slots: int) -> None:
    kernel = find_kernel(lowered(case, overlapped(case, order, 2, slots), "T2"))
    events = [run_protocol(kernel, launch) for launch in launches(kernel, case.case.values())]
    assert max(events) > 0


@over(ATTENTIONS[:1])
def test_with_a_single_slot_nothing_overlaps(case: Partitioned) -> None:
    """The role would wait for the next keys, and who loads them for the slot of these values."""
    module = lowered(case, overlapped(case, "second", 2, 1), "T2")
    assert not any(isinstance(op, DotWaitOp) for op in module.walk())
    reasons = {pipelining_of(op) for op in module.walk()} - {""}
    assert reasons == {"not overlapped: ring v has a single slot"}


@over(CASES[-2:])
@pytest.mark.parametrize("order", ["FA_secondDot", "FA_firstDot", "straight", None])
def test_an_option_says_the_order(case: Partitioned, order: str | None) -> None:
    options = {"num_consumer_groups": 2, "loop_schedule": order}
    require_same(run_threads(case.case, None, **options), run_plain_threads(case.case))


THREE = [(200, False), (192, True), (410, True)]


@pytest.mark.parametrize(("length", "is_causal"), THREE)
@pytest.mark.parametrize("order", [None, "FA_secondDot", "straight"])
def test_three_groups_share_192_rows(length: int, is_causal: bool, order: str | None) -> None:
    """A row is computed alike, whichever block it lies in."""
    case = attention_case(length, is_causal, 192, num_consumer_groups=3, loop_schedule=order)
    found = run_threads(case)
    other = run_threads(attention_case(length, is_causal))
    assert not np.isnan(other["out"]).any()
    require_same(found, other)
