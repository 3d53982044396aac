"""Schedules that a kernel's dependences or the machine do not allow are refused, with both ops."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia import pipelined_kernels as kernels
from tests.unit.targets.nvidia.pipelined_kernels import halves
from tests.unit.targets.nvidia.test_pipelined_loops import accounts, at_t2
from tilewright import JITFunction
from tilewright.support.errors import PlanRefused

MATMUL = (halves(1, 64, 64), halves(2, 64, 64), np.zeros((64, 64), np.float32), 64, 64, 64)
TILES = {"BM": 64, "BN": 64, "BK": 64}
RING = "ring ab tiles load#0 load#1 slots 3 cp_async release wait; "
# Products: dot#0 takes load#0 and load#1.
WRONG_MATMULS = {
    "loop for#0 load#0 @1.0 load#1 @0.0 dot#0 @0.1": r"dot#0 .* takes what load#0 .* makes",
    "loop for#0 load#0 @0.0 load#1 @1.0 dot#0 @0.1": r"dot#0 .* takes what load#1 .* makes",
    "loop for#0 load#0 @0.1 load#1 @0.0 dot#0 @0.0": r"dot#0 .* takes what load#0 .* makes",
    "loop for#0 load#0 @0.0 load#1 @0.1 dot#0 @0.0": r"dot#0 .* takes what load#1 .* makes",
    "loop for#0 load#0 @3.0 load#1 @3.0 dot#0 @2.5": r"dot#0 .* takes what load#1 .* makes",
    "loop for#0 load#0 @1.2 load#1 @1.0 dot#0 @1.1": r"dot#0 .* takes what load#0 .* makes",
    "loop for#0 load#0 @0.0 store#0 @1.0 dot#0 @1.0": "store#0 .* does not stand directly in for#0",
    "ring ab tiles load#0 load#1 slots 2 cp_async release wait; "
    "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1": "has 2 slots, and 3 tiles of load#0",
    "ring ab tiles load#0 load#1 slots 3 cp_async release late; "
    "loop for#0 load#0 @0.1 load#1 @0.1 dot#0 @2.0": "and 4 tiles of load#0 .* released late",
    "ring a tiles load#0 slots 1 cp_async release wait; "
    "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @1.1": "ring `a` has 1 slots, and 2 tiles",
    "ring b tiles load#1 slots 4 cp_async release wait; "
    "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @4.1": "ring `b` has 4 slots, and 5 tiles of load#1",
    "ring ab tiles load#0 load#1 slots 4 tma release wait; "
    "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1": "load#0 is a load through pointers",
    "ring ab tiles load#0 load#1 slots 4 cp_async release wait; "
    "loop for#0 load#0 @0.0 load#1 @1.0 dot#0 @2.1": r"fill one slot at the stages \[0, 1\]",
    "ring ab tiles load#0 load#1 slots 4 cp_async release wait; "
    "loop for#0 load#0 @0.0 dot#0 @2.1": "load#1 fills ring `ab` and has a place in no loop",
    "ring ab tiles load#0 load#1 slots 64 cp_async release wait; "
    "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @63.1": "take 1048576 bytes, and sm_90a has",
    "ring a tiles load#0 slots 20 cp_async; ring b tiles load#1 slots 20 cp_async; "
    "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1": "the rings up to `b` take 327680 bytes",
    RING + "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1 order wait(dot#0) dot#0":
        "waits for dot#0 before it runs",
    RING + "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1 order dot#0 release(ab) wait(dot#0)":
        "releases ring `ab` before it waits for dot#0",
    RING + "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1 order dot#0 release(ab)":
        "releases ring `ab` before it waits for dot#0",
    RING + "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1 order store#0 dot#0":
        "runs store#0, which is in another loop",
    "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @99.1": "holds .* registers a thread",
    "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @15.1": "holds .* registers a thread",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG_MATMULS)
def test_a_wrong_schedule_of_a_matmul_is_refused(text: str) -> None:
    with pytest.raises(PlanRefused, match=WRONG_MATMULS[text]) as caught:
        at_t2(kernels.matmul, MATMUL, {**TILES, "schedule": text, "bulk_access": "never"})
    assert caught.value.span is not None
    assert caught.value.span.file.endswith("pipelined_kernels.py")


ATTENTION = (*(halves(seed, 256, 64) for seed in (1, 2, 3)), np.zeros((256, 64), np.float32), 256)
# load#1 are the keys, dot#0 the scores, load#2 the values, dot#1 the sum.
WRONG_ATTENTIONS = {
    "loop for#0 dot#0 @1.0 dot#1 @0.0": r"dot#1 .* takes what dot#0 .* in the same iteration",
    "loop for#0 dot#0 @0.1 dot#1 @0.0": r"dot#1 .* takes what dot#0 .* in the same iteration",
    "loop for#0 load#2 @1.0 dot#1 @0.0": r"dot#1 .* takes what load#2",
    "loop for#0 load#1 @1.0 dot#0 @0.0 dot#1 @1.0": r"dot#0 .* takes what load#1",
    "loop for#0 load#1 @0.5 dot#0 @0.4 dot#1 @1.0": r"dot#0 .* takes what load#1",
    "loop for#0 load#0 @0.0 dot#0 @1.0": "load#0 .* does not stand directly in for#0",
    "loop for#0 reduce#0 @1.0 dot#1 @0.0 dot#0 @0.0": r"dot#1 .* takes what reduce#0",
    "loop for#0 reduce#0 @0.0 dot#0 @0.1 dot#1 @1.0": r"reduce#0 .* takes what dot#0",
    "ring kv tiles load#1 load#2 slots 1 cp_async release wait; "
    "loop for#0 load#1 @0.0 load#2 @0.0 dot#0 @1.1 dot#1 @1.1": "1 slots, and 2 tiles",
}


@pytest.mark.parametrize("text", WRONG_ATTENTIONS)
def test_a_wrong_schedule_of_attention_is_refused(text: str) -> None:
    meta = {"CAUSAL": False, "S": 64, "D": 64, "schedule": text}
    with pytest.raises(PlanRefused, match=WRONG_ATTENTIONS[text]) as caught:
        at_t2(kernels.attention, ATTENTION, meta)
    assert "pipelined_kernels.py:" in caught.value.summary


@tilewright.jit
def running_sum(x, n, BLOCK: tl.constexpr):
    """Each block is added to the next one, in memory."""
    at = tl.arange(0, BLOCK)
    for step in range(n):
        last = tl.load(x + step * BLOCK + at)
        tl.store(x + (step + 1) * BLOCK + at, last * 2)


def test_a_load_does_not_run_ahead_of_a_store_that_it_may_read() -> None:
    x = np.zeros((8, 128), np.float32)
    text = "loop for#0 load#0 @0.0 store#0 @1.0"
    with pytest.raises(
        PlanRefused, match=r"load#0 .* runs ahead of store#0 .* write what it reads"
    ):
        at_t2(running_sum, (x, 7), {"BLOCK": 128, "schedule": text})


@tilewright.jit
def hinted_sum(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for step in tl.range(n, num_stages=3):
        last = tl.load(x + step * BLOCK + at)
        tl.store(x + (step + 1) * BLOCK + at, last * 2)


def test_a_hint_that_cannot_be_followed_changes_nothing() -> None:
    x = np.ones((8, 128), np.float32)
    hinted_sum.simulate[(1,)](x, 7, BLOCK=128)
    assert np.array_equal(x[:, 0], 2.0 ** np.arange(8))
    module = at_t2(hinted_sum, (x, 7), {"BLOCK": 128})
    assert accounts(module) == []
    assert "runs ahead of tt.store" in str(module)


@pytest.mark.parametrize(
    ("kernel", "args", "meta", "text"),
    [
        (kernels.matmul, MATMUL, TILES, RING + "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @2.1"),
        (kernels.matmul, MATMUL, TILES, "loop for#0 load#0 @0.0 load#1 @0.0 dot#0 @1.1"),
    ],
)
def test_an_authors_schedule_is_carried_out(
    kernel: JITFunction, args: tuple[object, ...], meta: dict[str, object], text: str
) -> None:
    (said,) = accounts(at_t2(kernel, args, {**meta, "schedule": text}))
    assert said.startswith("loads run ")


def test_a_legal_schedule_that_is_not_carried_out_yet_is_a_remark() -> None:
    text = "loop for#0 dot#0 @0.0 dot#1 @1.1"
    meta = {"CAUSAL": False, "S": 64, "D": 64, "schedule": text}
    (said,) = accounts(at_t2(kernels.attention, ATTENTION, meta))
    assert said.startswith("not pipelined: ttg.dot at ")
