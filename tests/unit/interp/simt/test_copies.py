"""Asynchronous copies: of single threads, of boxes, and the barriers that announce them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.simt.programs import (
    BARRIER,
    FENCE,
    TENSOR_MAP,
    copy_in,
    random_bits,
    run,
    shared_at,
    store_registers,
)
from tilewright.interp.simt.faults import ProxyRace, SharedRace
from tilewright.interp.simt.tensor_map import TensorMap
from tilewright.support.errors import Deadlock, InternalError, KernelFault

COMMIT = "  call void @llvm.nvvm.cp.async.commit.group()\n"
WAIT = "  call void @llvm.nvvm.cp.async.wait.group(i32 0)\n"
COPY = """  %from = getelementptr <4 x i32>, ptr addrspace(1) %x, i32 %tid
  %to = getelementptr <4 x i32>, ptr addrspace(3) @shared, i32 %tid
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
"""


def read_back(xor: int) -> str:
    lines = f"""  %other = xor i32 %tid, {xor}
  %back = getelementptr <4 x i32>, ptr addrspace(3) @shared, i32 %other
  %w = load <4 x i32>, ptr addrspace(3) %back
"""
    lines += "".join(f"  %w{i} = extractelement <4 x i32> %w, i32 {i}\n" for i in range(4))
    return lines + store_registers([f"%w{i}" for i in range(4)], "out")


def copied(body: str) -> tuple[np.ndarray, np.ndarray]:
    x, out = random_bits(256, 1), np.zeros(256, np.uint32)
    run(body, "x; out", x, out)
    return x.reshape(-1, 4), out.reshape(-1, 4)


def test_a_copy_is_there_for_others_after_wait_and_barrier() -> None:
    x, out = copied(COPY + COMMIT + WAIT + BARRIER + read_back(33))
    np.testing.assert_array_equal(out, x[np.arange(64) ^ 33])


def test_copies_count_as_accesses_of_both_memories() -> None:
    x, out = random_bits(256, 1), np.zeros(256, np.uint32)
    report = run(COPY + COMMIT + WAIT + BARRIER + read_back(33), "x; out", x, out)
    (shared,) = (access for access in report.shared_accesses() if access.kind == "copy")
    (read,) = (access for access in report.global_accesses() if access.kind == "copy")
    assert (shared.transactions_per_request, shared.efficiency) == (4, 1)
    assert read.requests == 2


def test_the_wait_alone_serves_the_thread_itself_only() -> None:
    x, out = copied(COPY + COMMIT + WAIT + read_back(0))
    np.testing.assert_array_equal(out, x)
    with pytest.raises(SharedRace):
        copied(COPY + COMMIT + WAIT + read_back(33))


def test_a_barrier_without_wait_is_not_enough() -> None:
    with pytest.raises(
        SharedRace, match=r"an asynchronous operation \(cp\.async of thread 0\) wrote"
    ):
        copied(COPY + COMMIT + BARRIER + read_back(0))


def test_waiting_with_a_group_pending_covers_older_groups_only() -> None:
    one_left = WAIT.replace("i32 0", "i32 1")
    with pytest.raises(SharedRace):
        copied(COPY + COMMIT + one_left + read_back(0))
    copied(COPY + COMMIT + COMMIT + one_left + read_back(0))


def test_bytes_beyond_the_source_size_become_zero() -> None:
    sized = COPY.replace("16(ptr", "16.s(ptr").replace("%from)", "%from, i32 %size)")
    x, out = copied("  %size = and i32 %tid, 8\n" + sized + COMMIT + WAIT + read_back(0))
    keeps = (np.arange(64) & 8)[:, None] // 4 > np.arange(4)
    np.testing.assert_array_equal(out, np.where(keeps, x, 0))


INIT = (
    shared_at("bar", "2048")
    + """  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %init, label %ready
init:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %bar, i32 1)
  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  br label %ready
ready:
"""
    + BARRIER
)
TRY_WAIT = "call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"
SPIN = f"""  br label %spin
spin:
  %done = {TRY_WAIT}(ptr addrspace(3) %bar, i32 0)
  br i1 %done, label %after, label %spin
after:
"""


def elected(body: str) -> str:
    return f"""  br i1 %zero, label %issue, label %issued
issue:
{body}  br label %issued
issued:
"""


def expect(num_bytes: int) -> str:
    return (
        "  %state = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta("
        f"ptr addrspace(3) %bar, i32 {num_bytes})\n"
    )


def load_box(row: int, column: int) -> str:
    return (
        "  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d(ptr addrspace(3) @shared, "
        f"ptr addrspace(3) %bar, ptr %map, i32 {column}, i32 {row}, i64 0, i1 0)\n"
    )


def boxed(row: int, column: int, wait: str, swizzle: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A box of 8 rows of 8 words, read back as it lies in shared memory."""
    x = random_bits(20 * 12, 2).reshape(20, 12)
    out = np.zeros(64, np.uint32)
    body = INIT + elected(expect(256) + load_box(row, column)) + wait
    body += "  %p = getelementptr i32, ptr addrspace(3) @shared, i32 %tid\n"
    body += "  %v = load i32, ptr addrspace(3) %p\n" + store_registers(["%v"], "out")
    run(body, f"{TENSOR_MAP} %map; out", TensorMap(x, (8, 8), swizzle), out)
    return x, out.reshape(8, 8)


def test_a_box_lands_row_by_row() -> None:
    x, out = boxed(4, 2, SPIN)
    np.testing.assert_array_equal(out, x[4:12, 2:10])


def test_a_box_over_the_edge_reads_zeros() -> None:
    x, out = boxed(-2, 8, SPIN)
    expected = np.zeros((8, 8), np.uint32)
    expected[2:, :4] = x[:6, 8:]
    np.testing.assert_array_equal(out, expected)


def test_a_swizzled_box_permutes_its_chunks() -> None:
    x, out = boxed(0, 0, SPIN, swizzle=32)
    chunks, expected = x[:8, :8].reshape(8, 2, 4), np.zeros((8, 2, 4), np.uint32)
    for row in range(8):
        for chunk in range(2):
            expected[row, chunk ^ (row >> 2 & 1)] = chunks[row, chunk]
    np.testing.assert_array_equal(out, expected.reshape(8, 8))


def test_a_box_may_not_be_read_before_its_mbarrier() -> None:
    with pytest.raises(SharedRace, match="mbarrier"):
        boxed(0, 0, BARRIER)


def test_an_mbarrier_that_never_completes_is_a_deadlock_with_its_state() -> None:
    with pytest.raises(Deadlock, match="lacks 0 arrivals and 256 bytes"):
        run(INIT + elected(expect(256)) + SPIN, "")


def test_too_many_arrivals_are_a_fault() -> None:
    arrive = "  %s = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) %bar)\n"
    with pytest.raises(KernelFault, match="than the 1 that it was made for"):
        run(INIT + arrive, "")


BOX_OPERANDS = "ptr addrspace(3) @shared, ptr %map, i32 4, i32 16, i64 0, i1 0"
STORE_BOX = f"""  call void @llvm.nvvm.cp.async.bulk.tensor.{{0}}.2d({BOX_OPERANDS})
  call void @llvm.nvvm.cp.async.bulk.commit.group()
  call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)
"""


def stored(kind: str, fence: str = FENCE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = random_bits(64, 3).view(np.int32), np.ones((20, 12), np.int32)
    before = y.copy()
    body = copy_in("x", 256, 64) + fence + BARRIER
    body += "  %zero = icmp eq i32 %tid, 0\n" + elected(STORE_BOX.format(kind))
    run(body, f"x; {TENSOR_MAP} %map", x, TensorMap(y, (8, 8)))
    return x.reshape(8, 8), before, y


def test_a_stored_box_is_clipped() -> None:
    x, before, y = stored("s2g.tile")
    before[16:, 4:] = x[:4]
    np.testing.assert_array_equal(y, before)


def test_a_box_may_be_added_to_memory() -> None:
    x, before, y = stored("reduce.add.tile")
    before[16:, 4:] += x[:4]
    np.testing.assert_array_equal(y, before)


def test_a_stored_box_needs_a_fence_behind_generic_writes() -> None:
    with pytest.raises(ProxyRace):
        stored("s2g.tile", fence="")


def test_shared_memory_is_free_only_after_the_bulk_wait() -> None:
    x, y = random_bits(64, 3), np.zeros((20, 12), np.uint32)
    again = """  %mine = getelementptr i32, ptr addrspace(3) @shared, i32 %tid
  store i32 -1, ptr addrspace(3) %mine
"""
    body = copy_in("x", 256, 64) + FENCE + BARRIER + "  %zero = icmp eq i32 %tid, 0\n"
    store = STORE_BOX.format("s2g.tile")
    for text, is_safe in ((store, True), (store.replace("read(i32 0)", "read(i32 1)"), False)):
        program = body + elected(text) + BARRIER + again
        arguments = (x, TensorMap(y, (8, 8)))
        if is_safe:
            run(program, f"x; {TENSOR_MAP} %map", *arguments)
            continue
        with pytest.raises(SharedRace, match="bulk copies of thread 0"):
            run(program, f"x; {TENSOR_MAP} %map", *arguments)


def test_a_thread_does_not_end_while_its_copies_run() -> None:
    x, y = random_bits(64, 3), np.zeros((20, 12), np.uint32)
    body = copy_in("x", 256, 64) + FENCE + BARRIER + "  %zero = icmp eq i32 %tid, 0\n"
    unfinished = STORE_BOX.format("s2g.tile").replace("read(i32 0)", "read(i32 1)")
    with pytest.raises(KernelFault, match="thread 0 ends while"):
        run(body + elected(unfinished), f"x; {TENSOR_MAP} %map", x, TensorMap(y, (8, 8)))


def test_nothing_is_written_over_an_mbarrier() -> None:
    write = "  store i32 0, ptr addrspace(3) %bar\n"
    with pytest.raises(KernelFault, match="falls on the mbarrier"):
        run(INIT + write, "")
    invalidate = in_assembly("mbarrier.inval.shared::cta.b64 [$0];", "ptr addrspace(3) %bar")
    run(INIT + elected(invalidate) + BARRIER + write, "")


def test_tensor_maps_refuse_what_the_hardware_refuses() -> None:
    with pytest.raises(InternalError, match="rows of 8 bytes"):
        TensorMap(np.zeros((8, 8), np.float32), (8, 2))
    with pytest.raises(InternalError, match="strides"):
        TensorMap(np.zeros((8, 7), np.float32), (8, 4))


def make_map(fields: dict[str, tuple[str, object]]) -> str:
    lines = [shared_at("map", "1024")]
    for i in range(16):
        lines += [shared_at(f"w{i}", str(1024 + 8 * i)), f"  store i64 0, ptr addrspace(3) %w{i}\n"]
    for name, (number, value) in fields.items():
        field = name.split()[0]
        kind = "i64" if field in ("global.address", "global.stride") else "i32"
        middle = f"i32 {number}, " if number else ""
        call = f"call void @llvm.nvvm.tensormap.replace.{field}.p3(ptr addrspace(3) %map"
        lines.append(f"  {call}, {middle}{kind} {value})\n")
    return "".join(lines)


MADE = {
    "global.address": ("", "%address"),
    "rank": ("", 1),
    "elemtype": ("", 2),
    "global.dim 0": ("0", 12),
    "global.dim 1": ("1", 20),
    "global.stride": ("0", 48),
    "box.dim 0": ("0", 8),
    "box.dim 1": ("1", 8),
    "element.stride 0": ("0", 1),
    "element.stride 1": ("1", 1),
}
PUBLISH = "".join(
    f"  %r{i} = load i64, ptr addrspace(3) %w{i}\n"
    f"  %g{i} = getelementptr i64, ptr addrspace(1) %made, i32 {i}\n"
    f"  store i64 %r{i}, ptr addrspace(1) %g{i}\n"
    for i in range(16)
)
GENERIC = "  %map2 = addrspacecast ptr addrspace(1) %made to ptr\n"
ACQUIRE = "  call void @llvm.nvvm.fence.proxy.tensormap_generic.acquire.gpu(ptr %map2, i32 128)\n"


def made(fields: dict[str, tuple[str, object]], acquire: str = ACQUIRE) -> tuple[np.ndarray, ...]:
    x, out = random_bits(20 * 12, 2).reshape(20, 12), np.zeros(64, np.uint32)
    text = "  %address = ptrtoint ptr addrspace(1) %x to i64\n" + make_map(fields)
    copy = load_box(4, 2).replace("%map", "%map2")
    body = INIT + elected(text + PUBLISH + GENERIC + acquire + expect(256) + copy) + SPIN
    body += "  %p = getelementptr i32, ptr addrspace(3) @shared, i32 %tid\n"
    body += "  %v = load i32, ptr addrspace(3) %p\n" + store_registers(["%v"], "out")
    run(body, "x; made; out", x, np.zeros(16, np.uint64), out)
    return x, out.reshape(8, 8)


def test_a_program_may_make_its_own_tensor_map() -> None:
    x, out = made(MADE)
    np.testing.assert_array_equal(out, x[4:12, 2:10])


def test_a_made_tensor_map_needs_its_fence() -> None:
    with pytest.raises(KernelFault, match="acquire"):
        made(MADE, acquire="")


def test_a_made_tensor_map_needs_all_of_its_fields() -> None:
    unset = {name: entry for name, entry in MADE.items() if name != "box.dim 1"}
    with pytest.raises(KernelFault, match="before all of its fields"):
        made(unset)


def test_copies_in_assembly_do_the_same() -> None:
    body = COPY.split("  call")[0] + (
        '  call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16; '
        'cp.async.commit_group; cp.async.wait_group 0;", "l,l"'
        "(ptr addrspace(3) %to, ptr addrspace(1) %from)\n"
    )
    x, out = copied(body + BARRIER + read_back(33))
    np.testing.assert_array_equal(out, x[np.arange(64) ^ 33])


def in_assembly(code: str, operands: str) -> str:
    codes = ["r" if operand.startswith("i32") else "l" for operand in operands.split(", ")]
    constraints = ",".join(codes)
    return f'  call void asm sideeffect "{code}", "{constraints}"({operands})\n'


def test_boxes_in_assembly_land_and_leave() -> None:
    x, y = random_bits(20 * 12, 2).reshape(20, 12), np.zeros((20, 12), np.uint32)
    load = in_assembly(
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
        "[$0], [$1, {$2, $3}], [$4];",
        "ptr addrspace(3) @shared, ptr %from, i32 2, i32 4, ptr addrspace(3) %bar",
    )
    store = in_assembly(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [$0, {$1, $2}], [$3]; "
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
        "ptr %to, i32 0, i32 1, ptr addrspace(3) @shared",
    )
    body = INIT + elected(expect(256) + load) + SPIN + elected(store).replace("issue", "leave")
    maps = (TensorMap(x, (8, 8)), TensorMap(y, (8, 8)))
    run(body, f"{TENSOR_MAP} %from; {TENSOR_MAP} %to", *maps)
    expected = np.zeros_like(y)
    expected[1:9, :8] = x[4:12, 2:10]
    np.testing.assert_array_equal(y, expected)


def test_contiguous_bytes_land_and_leave() -> None:
    x, y = random_bits(64, 5), np.zeros(64, np.uint32)
    load = in_assembly(
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
        "ptr addrspace(3) @shared, ptr addrspace(1) %x, i32 128, ptr addrspace(3) %bar",
    )
    store = in_assembly(
        "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2; "
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
        "ptr addrspace(1) %y, ptr addrspace(3) @shared, i32 64",
    )
    body = INIT + elected(expect(128) + load) + SPIN + elected(store).replace("issue", "leave")
    run(body, "x; y", x, y)
    np.testing.assert_array_equal(y[:16], x[:16])
    assert not y[16:].any()


def test_a_wait_loop_in_assembly_waits() -> None:
    spin = (
        '  call void asm sideeffect "{ .reg .pred p; LW${:uid}: '
        "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @p bra LD${:uid}; "
        'bra LW${:uid}; LD${:uid}: }", "l,r,~{memory}"(ptr addrspace(3) %bar, i32 0)\n'
    )
    x, out = boxed(4, 2, spin)
    np.testing.assert_array_equal(out, x[4:12, 2:10])


LEAVE = (
    "  %other = xor i32 %tid, 33\n"
    "  %block = getelementptr <4 x i32>, ptr addrspace(3) @shared, i32 %other\n"
    "  %block_at = ptrtoint ptr addrspace(3) %block to i32\n"
    "  %place = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %tid\n"
    "  %place_at = ptrtoint ptr addrspace(1) %place to i64\n"
    '  call void asm sideeffect "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], 16; '
    'cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", "l,r"'
    "(i64 %place_at, i32 %block_at)\n"
)


@pytest.mark.parametrize(
    "fenced",
    [WAIT + FENCE + BARRIER, WAIT + BARRIER + FENCE],
    ids=["by who copied", "by who reads"],
)
def test_the_engine_reads_what_threads_copied_behind_a_fence(fenced: str) -> None:
    """Copies of threads write by the proxy of plain stores; the fence is anywhere in between."""
    x, out = copied(COPY + COMMIT + fenced + LEAVE)
    np.testing.assert_array_equal(out, x[np.arange(64) ^ 33])
    for body in (WAIT + BARRIER, FENCE + WAIT + BARRIER):
        with pytest.raises(ProxyRace, match=r"an asynchronous operation \(cp.async of thread"):
            copied(COPY + COMMIT + body + LEAVE)
