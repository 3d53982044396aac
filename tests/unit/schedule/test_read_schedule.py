"""What authors say of the schedule in their kernels: obeyed on a GPU, and harmless elsewhere."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.ptxas.kernels import request_of
from tests.unit.schedule import scheduled_kernels as kernels
from tilewright import JITFunction
from tilewright.compiler.stages import schedule_of, stage_text
from tilewright.targets.cpu.driver import CpuDriver

S = 64
WAYS = ("simulate", "interpret", "cpu")


def operands(depth: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(depth)
    shapes = ((S, max(depth, 1)), (max(depth, 1), S))
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in shapes)
    return a, b


def schedule_text(kernel: JITFunction, depth: int, **meta: object) -> str:
    a, b = operands(depth)
    meta = {"S": S, "bulk_access": "never", **meta}
    request = request_of(kernel, (a, b, np.zeros((S, S), np.float32), depth), meta)
    (found,) = re.findall(r'#tw\.schedule<"([^"]*)"', stage_text(request, "decide-schedule"))
    assert schedule_of(request).remarks == ()  # it is carried out as well
    return found


def check_everywhere(kernel: JITFunction, depth: int, times: int, **meta: object) -> None:
    a, b = operands(depth)
    wide = a.astype(np.float32), b.astype(np.float32)
    expected = times * (wide[0] @ wide[1]) if depth else np.zeros((S, S), np.float32)
    for way in WAYS:
        out = np.full((S, S), 7, np.float32)
        run = kernel if way == "cpu" else getattr(kernel, way)
        run[(1,)](a, b, out, depth, S=S, **meta)
        np.testing.assert_array_equal(out, expected, err_msg=f"{way}, depth {depth}")


@pytest.mark.parametrize("depth", [0, 8, 80, 192, 328])
def test_stages_of_ops_change_no_result(depth: int) -> None:
    check_everywhere(kernels.staged, depth, 1, LOADS=0, PRODUCT=2)


@pytest.mark.parametrize("depth", [0, 64, 200])
@pytest.mark.parametrize("kernel", [kernels.hinted, kernels.inlined_twice])
def test_the_text_of_a_loop_changes_no_result(kernel: JITFunction, depth: int) -> None:
    check_everywhere(kernel, depth, 2, TEXT=kernels.TWO_SLOTS)


def test_loads_with_stages_fill_as_many_slots_as_they_are_ahead() -> None:
    assert schedule_text(kernels.staged, 192, LOADS=0, PRODUCT=2) == (
        "ring ring0 tiles load#0 load#1 slots 3 cp_async release wait; "
        "loop for#0 load#0 @0.1 load#1 @0.1 dot#0 @2.0"
    )
    more = schedule_text(kernels.staged, 192, LOADS=0, PRODUCT=2, STAGES=5)
    assert "load#0 load#1 slots 5" in more


def test_a_loop_without_a_text_is_decided_beside_one_that_has_it() -> None:
    text = schedule_text(kernels.hinted, 192, TEXT=kernels.LATE)
    assert "ring ab tiles load#0 load#1 slots 4 cp_async release late" in text
    assert "ring ring1 tiles load#2 load#3 slots 2 cp_async release wait" in text
    assert "loop for#1 load#2 @0.0 load#3 @0.0 dot#1 @1.1" in text
    left = schedule_text(kernels.hinted, 192, TEXT=kernels.LATE, num_stages=1)
    assert "for#1" not in left


def test_rings_of_two_inlined_loops_have_names_of_their_own() -> None:
    text = schedule_text(kernels.inlined_twice, 192, TEXT=kernels.TWO_SLOTS)
    assert "ring ab tiles load#0 load#1" in text and "ring ab_1 tiles load#2 load#3" in text
    assert "loop for#1 load#2 @0.0 load#3 @0.0 dot#1 @1.1" in text


@pytest.mark.parametrize("tasks", [(1,), (1, 2)])
def test_tasks_are_the_roles_of_a_kernel(tasks: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (128, 192)).astype(np.float16)
    b = rng.integers(-3, 4, (192, 64)).astype(np.float16)
    meta = {"M": 128, "N": 64, "K": 64, "LOADS": (0,), "PRODUCT": tasks}
    for way in WAYS:
        c = np.zeros((128, 64), np.float32)
        run = kernels.in_tasks if way == "cpu" else getattr(kernels.in_tasks, way)
        run[(1,)](a, b, c, 192, **meta)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32), err_msg=way)
    request = request_of(kernels.in_tasks, (a, b, np.zeros((128, 64), np.float32), 192), meta)
    remarks = "\n".join(schedule_of(request).remarks)
    count = f"math x{len(tasks)}" if len(tasks) > 1 else "math"
    assert f"runs as roles: load (4 warps, 40 registers) | {count} (4 warps" in remarks


@pytest.mark.parametrize(
    ("tasked", "groups"),
    [("keys", 2), ("values", 2), ("product", 2), ("softmax", 2), ("nothing", 0)],
)
def test_one_task_is_enough_and_the_rest_goes_where_it_is_needed(tasked: str, groups: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((128, 64)).astype(np.float16) for _ in range(3))
    meta = {"M": 128, "N": 32, "D": 64, "TASKED": tasked}
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    weights = np.exp2(scores - scores.max(1, keepdims=True))
    expected = weights @ v.astype(np.float64) / weights.sum(1, keepdims=True)
    for way in WAYS:
        out = np.zeros((128, 64), np.float32)
        kernel = kernels.attention_in_tasks
        run = kernel if way == "cpu" else getattr(kernel, way)
        run[(1,)](q, k, v, out, 128, **meta)
        np.testing.assert_allclose(out, expected, atol=2e-2, err_msg=way)
    remarks = "\n".join(
        schedule_of(
            request_of(kernel, (q, k, v, np.zeros((128, 64), np.float32), 128), meta)
        ).remarks
    )
    count = f"math x{groups}" if groups > 1 else "math"
    assert (f"load (4 warps, 40 registers) | {count} (4 warps" in remarks) is (groups > 0)
    assert ("runs as roles" in remarks) is (groups > 0)


def test_what_a_gpu_alone_reads_is_ignored_on_a_cpu() -> None:
    gpu_only = {"schedule", "num_consumer_groups", "num_buffers_warp_spec", "num_stages"}
    assert gpu_only <= CpuDriver.ignored_options
