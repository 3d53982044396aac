"""Roles through every level, to threads: the bits of the program that they were made of."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.case import Array
from tests.corpus.forming import run_tiles
from tests.corpus.partitioned import AB, ATTENTIONS, PARTITIONED, Partitioned, gemm, gemm_case
from tests.corpus.run import run_module, tile_module
from tests.corpus.threads import gpu_request, run_plain_threads, run_threads
from tilewright.compiler.pipeline import Pipeline, schedule_pipeline
from tilewright.ir.schedule_attributes import annotate_schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ir.verify_level import verify_level
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingSeekOp
from tilewright.ops.roles import RolesOp
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.partition.form import partition_remarks
from tilewright.targets.target import load_target

# The copy engine takes no tensor without elements.
SIMULATED = [case for case in PARTITIONED if not case.name.endswith("no-step")]


def over(cases: list[Partitioned]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def lowered(case: Partitioned, schedule: str, level: str) -> ModuleOp:
    """The case at a level on the way to T2, checked after each pass."""
    target, request = load_target("nvidia"), gpu_request(case.case)
    module = tile_module(request)
    annotate_schedule(find_kernel(module), parse_schedule(schedule))
    passes = schedule_pipeline(target, request.machine, request.compile_options).passes
    if level == "T1":
        passes = tuple(item for item in passes if item.produces != "T2")
    produced = {item.name: item.produces for item in passes}
    Pipeline(passes).apply(module, lambda name, m: verify_level(m, target.contract(produced[name])))
    assert not partition_remarks(find_kernel(module))
    assert any(isinstance(op, RolesOp) for op in module.walk())
    return module


def require_same(found: dict[str, Array], expected: dict[str, Array]) -> None:
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, name)


@over(PARTITIONED)
@pytest.mark.parametrize("level", ["T1", "T2"])
@pytest.mark.parametrize(("replicas", "slots"), [(1, 1), (2, 2)])
def test_rings_bring_what_channels_bring(
    case: Partitioned, level: str, replicas: int, slots: int
) -> None:
    module = lowered(case, case.text(replicas, slots=slots), level)
    require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), run_tiles(case.case))


@over(SIMULATED)
@pytest.mark.parametrize(("replicas", "slots"), [(1, 2), (2, 1), (2, 3)])
def test_threads_of_roles_compute_the_bits_of_one_program(
    case: Partitioned, replicas: int, slots: int
) -> None:
    schedule = parse_schedule(case.text(replicas, slots=slots))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, run_plain_threads(case.case))


def test_rings_that_go_in_step_share_their_counter() -> None:
    """In each loop of attention, k and v are taken once an iteration."""
    module = lowered(ATTENTIONS[0], ATTENTIONS[0].text(2), "T2")
    load, math = next(op for op in module.walk() if isinstance(op, RolesOp)).bodies
    for body in (load, math):
        seeks = [op.ring_of().ring_name.data for op in body.walk() if isinstance(op, RingSeekOp)]
        assert len(seeks) == 3, seeks  # one for q, and one for k and v in each of two loops


def test_columns_may_be_shared_to_the_end() -> None:
    case = Partitioned(gemm_case(gemm, 128, 256, 192, "gemm-wide", N=128), AB)
    module = lowered(case, case.text(2, "n"), "T2")
    require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), run_tiles(case.case))


@over(SIMULATED[::3])
@pytest.mark.parametrize("groups", [1, 2])
def test_an_option_makes_roles(case: Partitioned, groups: int) -> None:
    require_same(
        run_threads(case.case, None, num_consumer_groups=groups), run_plain_threads(case.case)
    )


@over(ATTENTIONS)
@pytest.mark.parametrize("slots", [1, 2])
def test_replicas_that_take_turns_compute_the_same(case: Partitioned, slots: int) -> None:
    schedule = parse_schedule(case.text(2, slots=slots) + "; turns lock dot#0 pass done")
    module = lowered(case, str(schedule), "T2")
    turns = [op.name for op in module.walk() if op.name.startswith("ttg.turn")]
    # Both loops fill the ring of the keys, and each takes a turn an iteration.
    assert turns == ["ttg.turn_wait", "ttg.turn_pass"] * 2
    require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), run_tiles(case.case))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, run_plain_threads(case.case))
