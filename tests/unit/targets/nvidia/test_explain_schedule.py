"""The account of a schedule: what runs where, over which rings, what each wait is for, and why."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ptxas.kernels import request_of
from tests.unit.grouped_programs import Group, by_descriptors
from tests.unit.targets.nvidia.test_enumerate_schedules import SIZES, operands, product
from tilewright.compiler.compile import to_tiles
from tilewright.compiler.stages import schedule_of, stage_text
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.explain.schedule import ScheduleSummary, explain_schedule
from tilewright.targets.target import load_target
from tilewright.tools.explain_gpu import explain_gpu

ARGUMENTS = (*operands(192), np.zeros((128, 64), np.float32), 192)


def summary_of(**options: object) -> ScheduleSummary | None:
    request = request_of(product, ARGUMENTS, {**SIZES, **options})
    tiles = to_tiles(request, load_target("nvidia"))
    return explain_schedule(find_kernel(tiles), find_kernel(schedule_of(request).module))


def test_a_pipelined_loop_names_places_rings_and_waits() -> None:
    summary = summary_of(num_stages=4)
    assert summary is not None and summary.roles == ()
    rows = [(op.anchor, op.place, op.ring) for op in summary.ops]
    assert rows == [
        ("load#0", "stage 0, cluster 1", "ring0"),
        ("load#1", "stage 0, cluster 1", "ring0"),
        ("dot#0", "stage 2, cluster 0", ""),
        ("store#0", "", ""),
    ]
    assert all("test_enumerate_schedules.py:" in op.line for op in summary.ops)
    (ring,) = summary.rings
    assert (ring.slots, ring.slot_bytes) == (4, 128 * 64 * 2 + 64 * 64 * 2)
    assert (ring.medium, ring.release, ring.loads) == ("tma", "late", "load#0, load#1")
    waits = {wait.what for wait in summary.waits}
    assert waits >= {"all products but the last", "every product that runs"}
    assert "the loads of the copy engine to this iteration's slot" in waits
    (loop,) = summary.loops
    assert loop.endswith("products run on into the next iteration")


def test_roles_say_registers_and_who_waits_for_which_ring() -> None:
    summary = summary_of(num_consumer_groups=2)
    assert summary is not None
    assert [(r.name, r.replicas, r.registers) for r in summary.roles] == [
        ("load", 1, 40),
        ("math", 2, 232),
    ]
    roles = {op.anchor: op.role for op in summary.ops}
    assert roles == {"load#0": "load", "load#1": "load", "dot#0": "math", "store#0": "math"}
    waits = {(wait.role, wait.what) for wait in summary.waits}
    assert ("load", "a slot of ring ring0 to be released") in waits
    assert ("math", "a slot of ring ring0 to be full") in waits
    assert any("slots of 24576 bytes fit" in reason for reason in summary.reasons)


def test_a_kernel_without_a_schedule_has_no_account() -> None:
    assert summary_of(num_stages=1) is None


def test_the_text_of_the_plan_reads_back() -> None:
    for options in ({"num_stages": 4}, {"num_consumer_groups": 2, "num_buffers_warp_spec": 4}):
        summary = summary_of(**options)
        assert summary is not None
        text = "; ".join(summary.clauses)
        assert str(parse_schedule(text)) == text
        plan = stage_text(request_of(product, ARGUMENTS, {**SIZES, **options}), "plan")
        assert f'#tw.schedule<"{text}"' in plan


def test_the_command_shows_it_and_what_nobody_said(capsys) -> None:
    for options, said in (({}, True), ({"num_stages": 2}, False)):
        request = request_of(product, ARGUMENTS, {**SIZES, **options})
        explain_gpu(request, schedule_of(request))
        shown = capsys.readouterr().out
        assert "ring ring0 tiles load#0 load#1 slots 2 tma release wait" in shown
        assert "stage 1, cluster 1" in shown and "2 × 24.0 KiB" in shown
        assert ("the launch does not say `num_stages`" in shown) is said


def test_roles_that_meet_say_where_and_what_is_complete(
    rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    group = Group(rng, ((64, 64, 64), (130, 72, 40)))
    options = {"P": 2, "M": 128, "N": 64, "K": 32, "num_consumer_groups": 2}
    request = request_of(by_descriptors, group.arguments(), options)
    tiles = to_tiles(request, load_target("nvidia"))
    summary = explain_schedule(find_kernel(tiles), find_kernel(schedule_of(request).module))
    assert summary is not None
    (meeting,) = (ring for ring in summary.rings if ring.name == "meet")
    assert (meeting.loads, meeting.slots, meeting.slot_bytes) == ("math, load", 1, 128)
    waits = {(wait.role, wait.what) for wait in summary.waits}
    assert ("math", "stores of the copy engine to be in memory") in waits
    assert ("load", "all loads that this role has started to ring ring0") in waits
    explain_gpu(request, schedule_of(request))
    shown = " ".join(capsys.readouterr().out.split())
    assert "load (2 times) grouped_" in shown and "1 fence for the asynchronous units" in shown
    assert "writes of a tile, then its store by the copy engine" in shown
    for reason in summary.reasons:
        assert shown.count(reason) == 1
