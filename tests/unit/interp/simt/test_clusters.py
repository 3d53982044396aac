"""Ctas of a cluster, which run at once and reach into each other's shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.simt.programs import BARRIER, TENSOR_MAP, kernel, random_bits, validated
from tilewright.interp.simt.faults import SharedRace
from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.interp.simt.tensor_map import TensorMap
from tilewright.support.errors import Deadlock, InternalError, KernelFault, OutOfBoundsAccess

THREADS = 128
RANK = "  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()\n"
MEET = (
    "  call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n"
    "  call void @llvm.nvvm.barrier.cluster.wait.aligned()\n"
)
INIT = """  %bar = getelementptr i8, ptr addrspace(3) @shared, i32 2048
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %init, label %ready
init:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %bar, i32 1)
  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  br label %ready
ready:
"""
TRY = "call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"
SPIN = f"""  br label %spin
spin:
  %done = {TRY}(ptr addrspace(3) %bar, i32 0)
  br i1 %done, label %after, label %spin
after:
"""
SIGNAL = """  %there = xor i32 %rank, 1
  %place = ptrtoint ptr addrspace(3) %bar to i32
  %flag = zext i1 %zero to i32
  call void asm sideeffect "{ .reg .pred p; .reg .b32 a; setp.ne.b32 p, $1, 0;
    mapa.shared::cluster.u32 a, $0, $2; @p mbarrier.arrive.shared::cluster.b64 _, [a]; }",
    "r,r,r,~{memory}"(i32 %place, i32 %flag, i32 %there)
""".replace("\n    ", " ")
STORE = """  %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %from = mul i32 %cta, 128
  %at = add i32 %from, %tid
  %word = getelementptr i32, ptr addrspace(3) @shared, i32 %tid
  %value = load i32, ptr addrspace(3) %word
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %at
  store i32 %value, ptr addrspace(1) %to
"""


def run(body: str, parameters: str, *arguments: Argument, grid: int = 2, seed: int | None = None):
    """Run a body as clusters of two ctas."""
    text = validated(kernel(RANK + body, parameters))
    simulate(text, "k", (grid, 1, 1), THREADS, arguments, 4096, cluster=2, seed=seed)


def multicast(mask: int, announced: int = 512) -> str:
    """The first cta brings 512 bytes to the ctas of a mask; both wait for them."""
    return f"""  br i1 %zero, label %announce, label %announced
announce:
  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) %bar, i32 {announced})
  %first = icmp eq i32 %rank, 0
  br i1 %first, label %bring, label %announced
bring:
  %both = addrspacecast ptr addrspace(3) @shared to ptr addrspace(7)
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %both, ptr addrspace(3) %bar, ptr %map, i32 0, i32 0, i16 {mask}, i64 0, i1 1, i1 0, i32 0)
  br label %announced
announced:
"""  # noqa: E501  # calls of one line


def word_each() -> str:
    """Every thread writes its place in the grid to shared memory."""
    return """  %own = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %hundreds = mul i32 %own, 1000
  %mine = add i32 %hundreds, %tid
  %slot = getelementptr i32, ptr addrspace(3) @shared, i32 %tid
  store i32 %mine, ptr addrspace(3) %slot
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_each_cta_has_its_own_memory_and_numbers(seed: int | None) -> None:
    out = np.zeros(4 * THREADS, np.uint32)
    run(word_each() + BARRIER + STORE, "out", out, grid=4, seed=seed)
    expected = 1000 * np.arange(4)[:, None] + np.arange(THREADS)
    np.testing.assert_array_equal(out.reshape(4, THREADS), expected)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_cta_waits_for_an_arrival_of_the_other_one(seed: int | None) -> None:
    out = np.zeros(2 * THREADS, np.uint32)
    run(INIT + MEET + word_each() + SIGNAL + SPIN + BARRIER + STORE + MEET, "out", out, seed=seed)
    assert out[THREADS] == 1000 and out[0] == 0


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_box_comes_to_both_ctas(seed: int | None) -> None:
    x, out = random_bits(128, 1).reshape(16, 8), np.zeros(2 * THREADS, np.uint32)
    body = INIT + MEET + multicast(3) + SPIN + STORE + MEET
    run(body, f"{TENSOR_MAP} %map; out", TensorMap(x, (16, 8), 0), out, seed=seed)
    np.testing.assert_array_equal(out.reshape(2, THREADS), [x.ravel()] * 2)


def test_a_cta_that_gets_no_bytes_is_a_deadlock() -> None:
    x, out = random_bits(128, 1).reshape(16, 8), np.zeros(2 * THREADS, np.uint32)
    body = INIT + MEET + multicast(1) + SPIN + STORE + MEET
    with pytest.raises(Deadlock, match="wait at the barrier of the cluster") as caught:
        run(body, f"{TENSOR_MAP} %map; out", TensorMap(x, (16, 8), 0), out)
    assert "lacks 0 arrivals and 512 bytes" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (multicast(4), r"a multicast to ctas \[2\] of a cluster of 2"),
        (SIGNAL.replace("xor i32 %rank, 1", "add i32 %rank, 2"), "mapa names no cta"),
    ],
)
def test_what_reaches_too_far_is_a_fault(body: str, message: str) -> None:
    x, out = random_bits(128, 1).reshape(16, 8), np.zeros(2 * THREADS, np.uint32)
    with pytest.raises(KernelFault, match=message):
        parameters = f"{TENSOR_MAP} %map; out"
        run(INIT + MEET + body + MEET + STORE, parameters, TensorMap(x, (16, 8), 0), out)


def test_bytes_that_come_while_a_thread_reads_are_a_race() -> None:
    """Nothing says that the other cta has read its words before the box falls on them."""
    x, out = random_bits(128, 1).reshape(16, 8), np.zeros(2 * THREADS, np.uint32)
    reading = word_each() + BARRIER + STORE + BARRIER
    body = INIT + MEET + reading + multicast(3) + SPIN + MEET
    with pytest.raises(SharedRace, match=r"thread 0 .* writes .*, which thread 128 .* with no"):
        run(body, f"{TENSOR_MAP} %map; out", TensorMap(x, (16, 8), 0), out)


def test_an_access_behind_the_memory_of_its_cta_is_a_fault() -> None:
    far = word_each().replace("@shared, i32 %tid", "@shared, i32 1024")
    with pytest.raises(
        OutOfBoundsAccess, match="offset 4096 of shared memory, which has 4096 bytes"
    ):
        run(far, "")


def test_a_grid_without_whole_clusters_is_refused() -> None:
    with pytest.raises(InternalError, match="has no clusters of 2"):
        run(MEET, "", grid=3)
