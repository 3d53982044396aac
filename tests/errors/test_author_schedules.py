"""Schedules that an author writes into a kernel and that cannot be: where, why, and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from tests.errors.test_refused_plans import positionless
from tests.plugins.goldens import Golden
from tests.ptxas.kernels import request_of
from tests.unit.schedule import scheduled_kernels as kernels
from tilewright import JITFunction
from tilewright.compiler.stages import schedule_of
from tilewright.support.errors import MalformedSchedule, NotConstexpr, PlanRefused

HALVES = np.zeros((64, 96), np.float16)
OUT = np.zeros((32, 32), np.float32)
STAGED = {"LOADS": 0, "PRODUCT": 2}
STATIC = {**STAGED, "schedule": "persist static"}
TASKS = {"M": 128, "N": 64, "K": 64}

WRONG = {
    "stage_of_a_product_before_its_loads": (kernels.staged, {"LOADS": 2, "PRODUCT": 0}),
    "stages_that_need_more_slots_than_are_asked_for": (kernels.staged, {**STAGED, "STAGES": 2}),
    "stage_that_is_no_number": (kernels.staged, {"LOADS": -1, "PRODUCT": 2}),
    "stage_beside_a_schedule": (kernels.staged, STATIC),
    "stage_beside_roles": (kernels.staged, {**STAGED, "num_consumer_groups": 1}),
    "stage_under_an_if": (kernels.staged_under_if, {}),
    "schedule_of_a_loop_with_too_few_slots": (kernels.hinted, {"TEXT": kernels.RING_OF_ONE}),
    "schedule_of_a_loop_with_an_unknown_load": (kernels.hinted, {"TEXT": kernels.UNKNOWN_LOAD}),
    "schedule_of_a_loop_with_roles": (kernels.hinted, {"TEXT": kernels.WITH_ROLES}),
    "schedule_of_a_loop_that_is_none": (kernels.hinted, {"TEXT": "ring ab tiles load#0 slots"}),
    "schedule_of_a_loop_beside_its_stages": (kernels.hinted, {"TEXT": kernels.LATE, "STAGES": 4}),
    "schedule_of_a_loop_beside_a_stage": (kernels.said_twice, {"TEXT": kernels.LATE}),
    "schedule_that_is_given_twice": (
        kernels.staged,
        {**STATIC, "plan": "kernel schedule persist static"},
    ),
    "tasks_of_loads_through_pointers": (kernels.plain_in_tasks, {}),
}  # fmt: skip
WRONG_TASKS = {
    "task_that_loads_and_computes": {"LOADS": (0, 1), "PRODUCT": (1,)},
    "task_that_loads_a_product": {"LOADS": (0,), "PRODUCT": (0,)},
    "tasks_that_load_for_themselves": {"LOADS": (1,), "PRODUCT": (1,)},
    "tasks_that_leave_one_out": {"LOADS": (0,), "PRODUCT": (2,)},
    "tasks_beside_another_number_of_groups": {
        "LOADS": (0,), "PRODUCT": (1, 2), "num_consumer_groups": 1
    },
    "task_that_there_is_not": {"LOADS": (0,), "PRODUCT": (4,)},
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_message_of_a_wrong_schedule_in_a_kernel(name: str, golden: Golden) -> None:
    kernel, meta = WRONG[name]
    with pytest.raises((PlanRefused, MalformedSchedule, NotConstexpr)) as caught:
        schedule_of(request_of(kernel, (HALVES, HALVES, OUT, 96), {"S": 32, **meta}))
    golden(f"golden/{name}", positionless(caught.value, kernel))


@pytest.mark.parametrize("name", WRONG_TASKS)
def test_the_message_of_tasks_that_are_no_roles(name: str, golden: Golden) -> None:
    args = (np.zeros((128, 192), np.float16), np.zeros((192, 64), np.float16))
    out = np.zeros((128, 64), np.float32)
    with pytest.raises((PlanRefused, NotConstexpr)) as caught:
        meta = {**TASKS, **WRONG_TASKS[name]}
        schedule_of(request_of(kernels.in_tasks, (*args, out, 192), meta))
    golden(f"golden/{name}", positionless(caught.value, kernels.in_tasks))


@pytest.mark.parametrize("kernel", [kernels.in_tasks_and_stages, kernels.in_tasks_until])
def test_the_message_of_tasks_where_none_can_be(kernel: JITFunction, golden: Golden) -> None:
    args = (np.zeros((128, 192), np.float16), np.zeros((192, 64), np.float16))
    out = np.zeros((128, 64), np.float32)
    with pytest.raises(PlanRefused) as caught:
        schedule_of(request_of(kernel, (*args, out, 192), TASKS))
    golden(f"golden/{kernel.__name__}", positionless(caught.value, kernel))
