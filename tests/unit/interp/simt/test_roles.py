"""A whole warp-specialised program: a producer of boxes, two consumers, a ring between them."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tests.unit.interp.simt.programs import TENSOR_MAP, validated
from tilewright.interp.simt.faults import SharedRace
from tilewright.interp.simt.simulate import simulate
from tilewright.interp.simt.tensor_map import TensorMap
from tilewright.support.errors import Deadlock, KernelFault

BF16 = ml_dtypes.bfloat16
M, N, K, DEPTH = 128, 64, 320, 64
SLOT_BYTES = (M + N) * DEPTH * 2


@dataclass(frozen=True)
class Ring:
    """A correct ring by default; each field can spoil it."""

    slots: int = 2
    full_bytes: int = SLOT_BYTES
    release: str = "after"
    consumer_phase: int = 0
    producer_phase: int = 1

    @property
    def barriers(self) -> int:
        """Where the mbarriers lie, full and empty of each slot in turn."""
        return self.slots * SLOT_BYTES


def wait(label: str, barrier: str, phase: str) -> str:
    call = "call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"
    return f"""  br label %{label}
{label}:
  %{label}ok = {call}(ptr addrspace(3) {barrier}, i32 {phase})
  br i1 %{label}ok, label %{label}done, label %{label}
{label}done:
"""


def advance(tag: str, ring: Ring) -> str:
    return f"""  %{tag}s1 = add i32 %{tag}s, 1
  %{tag}wrap = icmp eq i32 %{tag}s1, {ring.slots}
  %{tag}s2 = select i1 %{tag}wrap, i32 0, i32 %{tag}s1
  %{tag}flip = xor i32 %{tag}p, 1
  %{tag}p2 = select i1 %{tag}wrap, i32 %{tag}flip, i32 %{tag}p
  %{tag}k2 = add i32 %{tag}k, 1
  %{tag}more = icmp ult i32 %{tag}k2, {K // DEPTH}
"""


def slot(tag: str, ring: Ring) -> str:
    return f"""  %{tag}bo = shl i32 %{tag}s, 4
  %{tag}bo2 = add i32 %{tag}bo, {ring.barriers}
  %{tag}full = getelementptr i8, ptr addrspace(3) @shared, i32 %{tag}bo2
  %{tag}empty = getelementptr i8, ptr addrspace(3) %{tag}full, i32 8
  %{tag}so = mul i32 %{tag}s, {SLOT_BYTES}
"""


def producer(ring: Ring) -> str:
    box = "call void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d(ptr addrspace(3)"
    return f"""producer:
  %elected = call {{i32, i1}} @llvm.nvvm.elect.sync(i32 -1)
  %chosen = extractvalue {{i32, i1}} %elected, 1
  %first = icmp ult i32 %tid, 32
  %mine = and i1 %chosen, %first
  br i1 %mine, label %ploop, label %done
ploop:
  %pk = phi i32 [0, %producer], [%pk2, %pwaitdone]
  %ps = phi i32 [0, %producer], [%ps2, %pwaitdone]
  %pp = phi i32 [{ring.producer_phase}, %producer], [%pp2, %pwaitdone]
{slot("p", ring)}{wait("pwait", "%pempty", "%pp")}\
  %state = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(\
ptr addrspace(3) %pfull, i32 {ring.full_bytes})
  %pa = getelementptr i8, ptr addrspace(3) @shared, i32 %pso
  %pb = getelementptr i8, ptr addrspace(3) %pa, i32 {M * DEPTH * 2}
  %column = mul i32 %pk, {DEPTH}
  {box} %pa, ptr addrspace(3) %pfull, ptr %ma, i32 %column, i32 0, i64 0, i1 0)
  {box} %pb, ptr addrspace(3) %pfull, ptr %mb, i32 %column, i32 0, i64 0, i1 0)
{advance("p", ring)}  br i1 %pmore, label %ploop, label %done
"""


def products() -> str:
    """Four products of depth 16, and the wait that names the accumulators anew."""
    count = N // 2
    struct = "{" + ", ".join(["float"] * count) + "}"
    ties = ",".join(["=f"] * count + [str(i) for i in range(count)])
    lines = ["  call void @llvm.nvvm.wgmma.fence.sync.aligned()"]
    current = [f"%acc{i}" for i in range(count)]
    registers = ", ".join(f"${i}" for i in range(count))
    for step in range(4):
        asm = (
            f"wgmma.mma_async.sync.aligned.m64n{N}k16.f32.bf16.bf16 {{{registers}}}, "
            f"${2 * count}, ${2 * count + 1}, 1, 1, 1, 0, 0;"
        )
        values = ", ".join(f"float {name}" for name in current)
        lines += [
            f"  %da{step} = add i64 %da, {2 * step}",
            f"  %db{step} = add i64 %db, {2 * step}",
            f'  %w{step} = call {struct} asm sideeffect "{asm}", "{ties},l,l"'
            f"({values}, i64 %da{step}, i64 %db{step})",
        ]
        current = [f"%w{step}_{i}" for i in range(count)]
        lines += [f"  {n} = extractvalue {struct} %w{step}, {i}" for i, n in enumerate(current)]
    lines.append("  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()")
    values = ", ".join(f"float {name}" for name in current)
    wait_all = "wgmma.wait_group.sync.aligned 0;"
    lines.append(f'  %w = call {struct} asm sideeffect "{wait_all}", "{ties}"({values})')
    lines += [f"  %new{i} = extractvalue {struct} %w, {i}" for i in range(count)]
    return "\n".join(lines) + "\n"


def descriptor(name: str, address: str) -> str:
    fields = 1 << 62 | 64 << 32 | 1 << 16
    return f"""  %wide{name} = zext i32 {address} to i64
  %abs{name} = add i64 %origin, %wide{name}
  %low{name} = lshr i64 %abs{name}, 4
  %{name} = or i64 %low{name}, {fields}
"""


def consumer(ring: Ring) -> str:
    count = N // 2
    release = """  br i1 %lead, label %LABEL, label %LABELd
LABEL:
  %LABELs = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) %cempty)
  br label %LABELd
LABELd:
"""
    early = release.replace("LABEL", "release") if ring.release == "before" else ""
    late = release.replace("LABEL", "release") if ring.release == "after" else ""
    latch = "released" if late else ("released" if early else "cwaitdone")
    phis = "".join(
        f"  %acc{i} = phi float [0.0, %consumer], [%new{i}, %{latch}]\n" for i in range(count)
    )
    stores = "".join(
        f"  %oi{i} = add i32 %obase, {i}\n"
        f"  %op{i} = getelementptr float, ptr addrspace(1) %out, i32 %oi{i}\n"
        f"  store float %new{i}, ptr addrspace(1) %op{i}\n"
        for i in range(count)
    )
    return f"""consumer:
  %member = sub i32 %tid, 128
  %cw = lshr i32 %member, 7
  %in = and i32 %tid, 127
  %lead = icmp eq i32 %in, 0
  %half = mul i32 %cw, {64 * DEPTH * 2}
  %origin = ptrtoint ptr addrspace(3) @shared to i64
  br label %cloop
cloop:
  %ck = phi i32 [0, %consumer], [%ck2, %{latch}]
  %cs = phi i32 [0, %consumer], [%cs2, %{latch}]
  %cp = phi i32 [{ring.consumer_phase}, %consumer], [%cp2, %{latch}]
{phis}{slot("c", ring)}{wait("cwait", "%cfull", "%cp")}  %aat = add i32 %cso, %half
  %bat = add i32 %cso, {M * DEPTH * 2}
{descriptor("da", "%aat")}{descriptor("db", "%bat")}{early}{products()}{late}\
{advance("c", ring)}  br i1 %cmore, label %cloop, label %end
end:
  %obase = mul i32 %member, {count}
{stores}  br label %done
"""


def program(ring: Ring) -> str:
    inits = "".join(
        f"  %bar{i} = getelementptr i8, ptr addrspace(3) @shared, i32 {ring.barriers + 8 * i}\n"
        f"  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %bar{i}, i32 {1 + i % 2})\n"
        for i in range(2 * ring.slots)
    )
    return f"""@shared = external addrspace(3) global [0 x i8], align 1024
define ptx_kernel void @k({TENSOR_MAP} %ma, {TENSOR_MAP} %mb, ptr addrspace(1) %out) {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %init, label %ready
init:
{inits}  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  br label %ready
ready:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %isp = icmp ult i32 %tid, 128
  br i1 %isp, label %producer, label %consumer
{producer(ring)}{consumer(ring)}done:
  ret void
}}
"""


def launch(ring: Ring, seed: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The product that the program gives, and the right one."""
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (M, K)).astype(BF16)
    b = rng.integers(-3, 4, (N, K)).astype(BF16)
    out = np.zeros((256, N // 2), np.float32)
    maps = [TensorMap(a, (M, DEPTH), 128), TensorMap(b, (N, DEPTH), 128)]
    shared_bytes = ring.barriers + 16 * ring.slots
    simulate(validated(program(ring)), "k", (1, 1, 1), 384, [*maps, out], shared_bytes, seed=seed)
    thread, register = np.arange(256)[:, None], np.arange(N // 2)
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register // 2 % 2)
    column = register // 4 * 8 + thread % 4 * 2 + register % 2
    exact = a.astype(np.float32) @ b.astype(np.float32).T
    return out, exact[row, column]


@pytest.mark.parametrize("slots", [1, 2, 3, 7])
def test_the_roles_together_multiply(slots: int) -> None:
    got, expected = launch(Ring(slots))
    np.testing.assert_array_equal(got, expected)


def test_a_slot_released_too_early_is_a_race() -> None:
    with pytest.raises(SharedRace, match=r"wgmma of warp group|mbarrier"):
        launch(Ring(release="before"))


def test_a_slot_that_is_never_released_is_a_deadlock() -> None:
    with pytest.raises(Deadlock, match="lacks 2 arrivals"):
        launch(Ring(release="never"))


def test_announcing_too_many_bytes_is_a_deadlock() -> None:
    with pytest.raises(Deadlock, match="and 16 bytes"):
        launch(Ring(full_bytes=SLOT_BYTES + 16))


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_the_roles_gives_the_same(seed: int) -> None:
    got, expected = launch(Ring(3), seed)
    np.testing.assert_array_equal(got, expected)


def test_some_order_shows_that_a_consumer_starts_with_the_wrong_phase() -> None:
    found: set[type[KernelFault]] = set()
    for seed in (None, 0, 1, 2):
        with pytest.raises(KernelFault) as caught:
            launch(Ring(consumer_phase=1), seed)
        found.add(type(caught.value))
    # A consumer that goes first reads what is not there yet; one that comes late waits for ever.
    assert len(found) == 2


def test_a_producer_that_starts_with_the_wrong_phase_is_a_deadlock() -> None:
    with pytest.raises(Deadlock):
        launch(Ring(producer_phase=0))
