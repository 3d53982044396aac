"""What warps do as one in the emitted text: shared indices, one elected thread, collective asm."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia import descriptor_kernels as cases
from tests.unit.targets.nvidia.descriptor_launching import lowered

_SHUFFLE = "llvm.nvvm.shfl.sync.idx"


@tilewright.jit
def add(x, y, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n)
    tl.store(out + at, total, mask=at < n)


def product(num_warps: int) -> str:
    """The text of a product of descriptors."""
    arguments = cases.operands(256, 256, 128, "float16", (128, 128, 64))
    return lowered(cases.matmul, arguments, {"num_warps": num_warps, "num_stages": 1}).text


def test_a_warp_index_that_no_lane_enters_is_one_value_of_the_warp() -> None:
    assert product(8).count(_SHUFFLE) == 1


def test_one_warp_needs_no_shuffle_for_its_index() -> None:
    arguments = cases.operands(64, 64, 64, "float16", (64, 64, 64))
    text = lowered(cases.matmul, arguments, {"num_warps": 1}).text
    assert _SHUFFLE not in text and "llvm.nvvm.elect.sync" in text


def test_an_index_of_lanes_and_warps_takes_the_bits_of_the_thread() -> None:
    x = np.zeros(1000, np.float32)
    assert _SHUFFLE not in lowered(add, [x, x, x, 1000, 256], {"num_warps": 4}).text


@pytest.mark.parametrize("num_warps", [4, 8])
def test_a_copy_is_started_by_a_thread_elected_in_a_uniform_branch(num_warps: int) -> None:
    text = product(num_warps)
    blocks = re.split(r"\n(?=\w+:)", text)
    starts = [b for b in blocks if "cp.async.bulk.tensor" in b or "mbarrier.init" in b]
    assert len(starts) == 4
    for start in starts:
        (electing,) = [b for b in blocks if f", label %{start.split(':')[0]}, " in b]
        assert "elect.sync" in electing and f"br i1 {value(electing, 'extractvalue')}," in electing
        (uniform,) = [b for b in blocks if f", label %{electing.split(':')[0]}, " in b]
        condition = uniform.split("br i1 ")[1].split(",")[0]
        assert f"{condition} = icmp eq i32 {value(text, 'call.*' + _SHUFFLE)}, 0" in text


def value(text: str, operation: str) -> str:
    """The name of what the first operation of a kind defines."""
    found = re.search(rf"(%\w+) = {operation}", text)
    assert found is not None
    return found[1]


def test_assembly_that_warps_execute_together_is_convergent() -> None:
    calls = [line for line in product(4).splitlines() if "asm" in line and ".sync." in line]
    instructions = sum(line.count(".sync.") for line in calls)
    assert instructions >= 6, "a fence, products, a commit and a wait"
    assert all(") convergent nounwind" in line for line in calls)
