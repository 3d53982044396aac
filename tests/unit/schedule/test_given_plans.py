"""Decisions that an author gives as text: obeyed, with the same results, or refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, check
from tests.corpus.threads import lower_for_gpu, run_threads
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ops.function import find_kernel
from tilewright.support.errors import MalformedSchedule, PlanRefused

SIZE = 64


@tilewright.jit
def averaged(x, y, z, n, SIZE: tl.constexpr):
    """z = x @ y by rows, over their sums; and the sorted sums in the last row."""
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    inside = i[:, None] < n
    left = tl.load(x + at, mask=inside, other=0.0)
    total = tl.dot(left, tl.load(y + at))
    sums = tl.sum(total, axis=1)
    tl.store(z + at, total / tl.maximum(sums, 1.0)[:, None], mask=inside)
    tl.store(z + (SIZE - 1) * SIZE + i, tl.sort(sums))


def case(rows: int = 50) -> Case:
    def inputs(rng: np.random.Generator) -> dict[str, object]:
        x, y = (rng.integers(0, 3, (SIZE, SIZE)).astype(np.float16) for _ in range(2))
        return {"x": x, "y": y, "z": np.zeros((SIZE, SIZE), np.float32), "n": rows, "SIZE": SIZE}

    def reference(values: SimpleNamespace) -> None:
        x = np.where(np.arange(SIZE)[:, None] < rows, values.x, 0).astype(np.float32)
        total = x @ values.y.astype(np.float32)
        sums = total.sum(axis=1)
        kept = total / np.maximum(sums, 1)[:, None]
        values.z[:rows] = kept[:rows]
        values.z[-1] = np.sort(sums)

    return Case("averaged", averaged, (1,), inputs, reference)


PLANS = {
    "mma": "dot#0 product mma 16x8x16, warps 2x2, a registers, b registers",
    "fma": "dot#0 product fma 1x1x1, warps 4x1, a shared, b shared",
    "narrow": "load#0 access vector 2, order 1 0\n\n  store#0 access vector 1, order 0 1",
    "registers": "load#1 copy registers",
    "in order": "reduce#0 exchange axis order",
    "all": "dot#0 product wgmma 64x32x16, warps 4x1, a registers, b shared\n"
    "load#1 copy registers\nreduce#0 exchange axis order\nload#1 access vector 1, order 1 0",
}


@pytest.mark.parametrize("rows", [0, 50, SIZE - 1])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_given_plan_changes_the_text_and_no_result(plan: str, rows: int) -> None:
    one = case(rows)
    check(one, run_threads(one, plan=plan), one.expected(), "given")
    assert lower_for_gpu(one, plan=plan).text != lower_for_gpu(one).text


def test_a_given_schedule_is_the_kernels() -> None:
    module = lower_for_gpu(case(), plan="kernel schedule persist static").scheduled.module
    schedule = schedule_of(find_kernel(module))
    assert schedule is not None and str(schedule) == "persist static"


REFUSED = {
    "dot#0": "`dot#0` is no line of a plan",
    "dot#1 product fma 1x1x1, warps 4x1, a shared, b shared": "names `dot#1`, which `averaged`",
    "dot#0 access vector 2, order 1 0": "has a `access` of `dot#0`, which takes none",
    "store#0 copy registers": "has a `copy` of `store#0`, which takes none",
    "load#0 speed high": "has a `speed` of `load#0`, which takes none",
    "dot#0 product wgmma": "`wgmma` is no plan of a product, such as `wgmma 64x128x16, ",
    "load#0 access vector 16, order 1 0": "32 bytes are more than 16 at once",
    "load#0 copy async 3": "one instruction of a lane copies 8 elements, not 3",
    "reduce#0 exchange shuffle": "there is no `shuffle`, but any order and axis order",
}


@pytest.mark.parametrize("plan", REFUSED)
def test_a_plan_that_cannot_be_is_refused_with_the_reason(plan: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        lower_for_gpu(case(), plan=plan)
    assert REFUSED[plan] in caught.value.summary
    assert caught.value.hint and caught.value.span is not None


def test_the_schedule_of_a_plan_is_read_as_schedules_are() -> None:
    with pytest.raises(MalformedSchedule):
        lower_for_gpu(case(), plan="kernel schedule nonsense")
