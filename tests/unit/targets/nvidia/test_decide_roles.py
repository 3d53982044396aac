"""The roles that a kernel gets whose author asks for them."""

from __future__ import annotations

import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case
from tests.corpus.partitioned import ATTENTIONS, GEMMS, gemm_case, persistent
from tests.corpus.run import tile_module
from tests.corpus.threads import gpu_request, lower_for_gpu
from tilewright.ir.schedule import Schedule
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import find_kernel
from tilewright.support.errors import InvalidOption
from tilewright.targets.nvidia.explain.kernel import explain_kernel
from tilewright.targets.nvidia.manifest import NvidiaReport
from tilewright.targets.nvidia.partition.decide import DecideRoles
from tilewright.targets.nvidia.partition.form import partition_remarks


@tilewright.jit
def asking(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, k, K, warp_specialize=True):
        acc = tl.dot(left.load([row, start]), right.load([start, column]), acc)
    out.store([row, column], acc.to(tl.float16))


def decided(case: Case, **options: int) -> Schedule | None:
    """The schedule that the pass gives a case."""
    kernel = find_kernel(module := tile_module(gpu_request(case)))
    DecideRoles(**options).apply(module)
    return schedule_of(kernel)


def text_of(case: Case, **options: int) -> str:
    schedule = decided(case, **options)
    assert schedule is not None
    assert parse_schedule(str(schedule)) == schedule
    return str(schedule)


def test_nobody_asks_and_nothing_is_decided() -> None:
    assert decided(GEMMS[0].case) is None


def test_loads_of_one_product_fill_a_ring_of_as_many_slots_as_fit() -> None:
    # 48 KiB a slot, and 32 or 64 KiB for the chunks that are stored.
    case = gemm_case(persistent, 256, 256, 256, "wide", N=256, GROUP=2)
    text = (
        "roles load regs 40 | math x2 regs 232 split m; ring ring0 tiles load#0 load#1 "
        "slots {} tma release wait; epilogue tma columns 64 buffers {}"
    )
    assert text_of(case, groups=2) == text.format(3, 4)
    assert text_of(case, groups=2, buffers=2) == text.format(4, 2)
    assert text_of(case, groups=2, slots=3) == text.format(3, 2)
    assert text_of(case, groups=2, is_clustered=True) == text.format(4, 2) + "; cluster 2"


def test_loops_over_the_same_tensors_share_their_rings() -> None:
    text = text_of(ATTENTIONS[0].case, groups=2)
    assert "ring ring0 tiles load#0 slots 1 tma" in text
    assert "ring ring1 tiles load#1 load#3 slots 8 tma" in text
    assert "ring ring2 tiles load#2 load#4 slots 8 tma" in text
    assert "loop for#0 dot#0 @0.0 dot#1 @1.1" in text and "loop for#1 dot#2 @0.0" in text


@pytest.mark.parametrize(("warps", "roles"), [(4, "math regs 240"), (8, "math x2 regs 232 split")])
def test_a_loop_may_ask(warps: int, roles: str) -> None:
    case = gemm_case(asking, 256, 128, 256, "asking")
    assert roles in text_of(case, num_warps=warps)
    threads = lower_for_gpu(case, None, num_warps=warps)
    assert threads.scheduled.metadata["num_warps"] == warps + 4


def test_remarks_tell_roles_rings_and_reasons() -> None:
    remarks = "\n".join(lower_for_gpu(GEMMS[0].case, None, num_consumer_groups=2).scheduled.remarks)
    assert (
        "the kernel runs as roles: load (4 warps, 40 registers) | math x2 (4 warps, 232" in remarks
    )
    assert "ring ring0 has 8 slots of 24576 bytes (128x64, 64x64), read by 1 group" in remarks
    assert "8 slots of 24576 bytes fit beside 32768 bytes" in remarks
    assert "132 programs at most run the grid, each one tile after the other" in remarks


def test_a_kernel_with_roles_is_explained() -> None:
    threads = lower_for_gpu(ATTENTIONS[1].case, None, num_consumer_groups=2)
    report = threads.scheduled.report
    assert isinstance(report, NvidiaReport)
    kernel = find_kernel(threads.scheduled.module)
    summary = explain_kernel(kernel, report.shared, report.ordering)
    assert {product.warps for product in summary.products} == {(4, 1)}
    assert [access.engine_bytes for access in summary.accesses[:2]] == [128 * 64 * 2, 64 * 64 * 2]


def test_options_say_slots_and_registers() -> None:
    case = GEMMS[0].case
    text = text_of(case, groups=2, slots=2, load_registers=24, math_registers=240)
    assert "load regs 24 | math x2 regs 240" in text and "slots 2" in text


def test_more_registers_than_there_are_is_an_error() -> None:
    with pytest.raises(InvalidOption, match="3 groups of 240 registers a thread and one of 32"):
        decided(GEMMS[0].case, groups=3, math_registers=240)


def test_a_schedule_that_is_given_is_kept() -> None:
    module = tile_module(gpu_request(GEMMS[0].case))
    given = parse_schedule(GEMMS[0].text(1))
    annotate_schedule(find_kernel(module), given)
    DecideRoles(groups=3).apply(module)
    assert schedule_of(find_kernel(module)) == given


def test_what_cannot_be_split_runs_as_it_did() -> None:
    """Three groups do not share 128 rows: the remark says so, and 4 warps do it."""
    threads = lower_for_gpu(GEMMS[0].case, None, num_consumer_groups=3)
    plain = lower_for_gpu(GEMMS[0].case, None)
    assert threads.text == plain.text
    kernel = find_kernel(threads.scheduled.module)
    (remark,) = partition_remarks(kernel)
    assert remark in threads.scheduled.remarks
    assert "128 of (128, 64) are not shared by 3 replicas" in remark


def test_slots_that_do_not_fit_are_left_out_with_a_remark() -> None:
    case = gemm_case(persistent, 256, 256, 256, "wide", N=256, GROUP=2)
    threads = lower_for_gpu(case, None, num_consumer_groups=2, num_buffers_warp_spec=9)
    assert "ring ring0 has 4 slots instead of 9" in "\n".join(threads.scheduled.remarks)
    assert threads.scheduled.metadata["shared_bytes"] == 4 * 48 * 1024 + 2 * 2 * 8 * 1024 + 4 * 16
