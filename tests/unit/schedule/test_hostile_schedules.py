"""Schedules that nobody should write: each is refused with an error of the catalogue."""

from __future__ import annotations

import pytest

from tests.corpus.partitioned import gemm, gemm_case, persistent
from tests.corpus.threads import lower_for_gpu
from tilewright.support.errors import (
    InvalidOption,
    MalformedSchedule,
    PlanRefused,
    ProtocolBroken,
)

RING = "ring ab tiles load#0 load#1 slots "
ROLES = "roles load | math; "
GROUPS = "roles load | math x2 split m; "
MALFORMED = {
    "a role without a name": "roles roles",
    "a clause that ends early": f"{ROLES}ring ab tiles load#0 load#1 slots",
    "fewer slots than none": f"{ROLES}{RING}-3",
    "no slots": f"{ROLES}{RING}0",
    "more slots than numbers have": f"{ROLES}{RING}100000000000",
    "a load that is not there": f"{ROLES}ring ab tiles load#0 load#7 slots 2",
    "a load twice": f"{ROLES}ring ab tiles load#0 load#0 slots 2",
    "a load in two rings": f"{ROLES}ring a tiles load#0 slots 2; {RING}2",
    "two rings of a name": f"{ROLES}ring a tiles load#0 slots 2; ring a tiles load#1 slots 2",
    "two roles of a name": f"roles load | load | math; {RING}2",
    "registers that no grant has": f"roles load regs 41 | math regs 233; {RING}2",
    "too many replicas": f"roles load | math x17 split m; {RING}2",
    "no replica": f"roles load | math x0; {RING}2",
    "an unknown split": f"roles load | math x2 split q; {RING}2",
    "a stage before the first": "loop for#0 dot#0 @-1.0",
    "a stage that no loop has": "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @1000000.0",
    "a loop that is not there": "loop for#9 dot#0 @1.0",
    "a loop that is a load": "loop load#0 dot#0 @1.0",
    "turns of nobody": f"{ROLES}{RING}2; turns nobody lock dot#0 pass done",
    "turns at a load": f"{GROUPS}{RING}2; turns math lock load#0 pass done",
    "chunks of 7 columns": f"{ROLES}{RING}2; epilogue tma columns 7 buffers 2",
    "no chunks": f"{ROLES}{RING}2; epilogue tma columns 32 buffers 0",
    "a cluster of three": f"{GROUPS}{RING}2; cluster 3",
    "a cluster of more than numbers have": f"{GROUPS}{RING}2; cluster 2147483648",
    "a turn that is never passed": f"{GROUPS}{RING}2; turns math lock dot#0 pass never",
    "turns at a product that is not there": f"{GROUPS}{RING}2; turns math lock dot#7 pass done",
    "turns said twice": f"{GROUPS}{RING}2" + "; turns math lock dot#0 pass done" * 2,
    "a cluster said twice": f"{GROUPS}{RING}2; cluster 2; cluster 2",
    "no cluster": f"{GROUPS}{RING}2; cluster 0",
    "an unknown persistence": f"{ROLES}{RING}2; persist dynamic",
    "an unknown mask": f"{ROLES}{RING}2; mask sometimes",
    "a byte that ends texts": "roles load\x00| math",
    "thousands of clauses": ROLES + f"{RING}2; " * 2000,
    "thousands of brackets": "(" * 5000,
}
REFUSED = {
    "more slots than shared memory": f"{ROLES}{RING}64",
    "a slot more than fits": f"{ROLES}{RING}10",
    "a loop's slots that do not fit": (f"{RING}40; loop for#0 load#0 @0.1 load#1 @0.1 dot#0 @3.0"),
    "a product before its loads": "loop for#0 dot#0 @0.0 load#0 @2.0 load#1 @2.0",
}


def compiled(**options: object) -> None:
    lower_for_gpu(gemm_case(gemm, 128, 64, 256, "hostile"), **options)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_text_that_says_nothing_is_malformed(name: str) -> None:
    with pytest.raises(MalformedSchedule) as caught:
        compiled(schedule=MALFORMED[name])
    assert "schedule" in caught.value.summary and caught.value.span is not None


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_machine_cannot_do_is_refused_at_a_line(name: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        compiled(schedule=REFUSED[name])
    span = caught.value.span
    assert span is not None and span.file.endswith("partitioned.py") and span.line == 23


@pytest.mark.parametrize(("load", "math"), [(1, 4), (8, 4), (4, 2), (1, 2)])
def test_roles_of_unlike_warps_are_refused(load: int, math: int) -> None:
    text = f"roles load warps {load} | math warps {math}; {RING}2"
    with pytest.raises(PlanRefused) as caught:
        compiled(schedule=text)
    said = caught.value
    assert f"`load` has {load} warps, `math` has {math}" in said.summary
    assert said.span is not None and said.span.file.endswith("partitioned.py")
    assert f"write `warps {max(load, math)}` behind both" in said.hint


@pytest.mark.parametrize("medium", ["cp_async", "store"])
def test_rings_of_roles_are_filled_by_the_copy_engine(medium: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        compiled(schedule=f"{ROLES}{RING}2 {medium}")
    assert f"ring `ab` is {medium}, and the copy engine fills the rings" in caught.value.summary
    assert caught.value.span is not None and caught.value.span.line == 23


def test_registers_are_said_of_every_role_or_of_none() -> None:
    text = f"roles load regs 40 | math; {RING}2"
    with pytest.raises(ProtocolBroken, match=r"math.*says no number of registers") as caught:
        compiled(schedule=text)
    assert "behind every role" in caught.value.hint


def test_slots_that_do_not_fit_say_both_sizes() -> None:
    with pytest.raises(PlanRefused, match="take 245760 bytes, and sm_90a has 232448 of shared"):
        compiled(schedule=REFUSED["a slot more than fits"])


def test_loads_that_fill_a_ring_in_turn_share_its_slots() -> None:
    """Loads of another loop take no slots of their own."""
    case = gemm_case(persistent, 256, 64, 256, "fits", GROUP=1)
    lower_for_gpu(case, schedule=f"{ROLES}{RING}9")


@pytest.mark.parametrize("dims", [(1, 2, 1), (2, 2, 1), (4, 1, 1)])
def test_clusters_of_another_shape_than_the_launch_makes_are_refused(
    dims: tuple[int, int, int],
) -> None:
    """Programs would load for others than those beside them."""
    case = gemm_case(persistent, 256, 64, 256, "clusters", GROUP=1)
    with pytest.raises(PlanRefused) as caught:
        lower_for_gpu(case, schedule=f"{GROUPS}{RING}2; cluster 2", cluster_dims=dims)
    said = caught.value.summary
    assert "the schedule says `cluster 2`" in said and f"clusters of {dims}" in said
    assert caught.value.span is not None


def test_registers_that_an_sm_does_not_have_are_refused() -> None:
    text = f"roles load regs 240 | math x2 regs 240 split m; {RING}2"
    with pytest.raises(ProtocolBroken, match="make 92160 of the program, and 12 warps have 64512"):
        compiled(schedule=text)


def test_registers_that_whole_units_leave_to_nobody_are_refused() -> None:
    """An SM has 65536, and 384 threads start with 168 each: roles would wait for the rest."""
    text = f"roles load regs 32 | math x2 regs 240 split m; {RING}2"
    with pytest.raises(ProtocolBroken, match="make 65536 of the program, and 12 warps have 64512"):
        compiled(schedule=text)
    options = {"num_consumer_groups": 2, "reg_dec_producer": 32, "reg_inc_consumer": 240}
    with pytest.raises(InvalidOption, match="are 65536 registers, and a program has at most 64512"):
        compiled(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"num_consumer_groups": 4},
        {"num_consumer_groups": -1},
        {"num_consumer_groups": 1, "num_buffers_warp_spec": 65},
        {"num_consumer_groups": 1, "reg_inc_consumer": 1000},
        {"num_consumer_groups": 2, "loop_schedule": "FA_thirdDot"},
        {"num_consumer_groups": 1, "deadlock_seconds": -1},
        {"jitter": float("nan")},
        {"schedule": 7},
        {"may_overlap": "perhaps"},
    ],
    ids=str,
)
def test_an_option_out_of_its_range_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption):
        compiled(**options)
