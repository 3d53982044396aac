"""What is said of a GPU kernel: each slow thing with its reason and its line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tilewright
import tilewright.language as tl
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.devices import DevicePlacement
from tilewright.jit import JITFunction
from tilewright.ops.function import find_kernel
from tilewright.support.options import option_names
from tilewright.targets.nvidia.explain.boxes import BoxSummary, explain_boxes
from tilewright.targets.nvidia.explain.kernel import KernelSummary, explain_kernel
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.manifest import NvidiaReport
from tilewright.targets.target import Scheduled, load_target
from tilewright.tools.main import tool

FLOATS, HALVES = np.zeros(1 << 16, np.float32), np.zeros(1 << 16, np.float16)
NUMBERS = np.zeros(1 << 16, np.int32)


def request_of(
    kernel: JITFunction, arguments: Sequence[object], **options: object
) -> CompileRequest:
    call = kernel.specialize_call(tuple(arguments), options)
    fields = {name: getattr(call.options, name) for name in option_names()}
    source, machine = call.source, named_machine("sm_90a")
    return CompileRequest(
        source.functions, source.kernel, call.specialization, fields, "nvidia", machine
    )


def schedule(kernel: JITFunction, arguments: Sequence[object], **options: object) -> Scheduled:
    request, target = request_of(kernel, arguments, **options), load_target("nvidia")
    return to_schedule(request, target, to_tiles(request, target, None), None)


def explain(kernel: JITFunction, arguments: Sequence[object], **options: object) -> KernelSummary:
    scheduled = schedule(kernel, arguments, **options)
    report = scheduled.report
    assert isinstance(report, NvidiaReport)
    return explain_kernel(find_kernel(scheduled.module), report.shared, report.ordering)


@tilewright.jit
def copy(x, y, stride, BLOCK: tl.constexpr):
    """One row."""
    at = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@tilewright.jit
def masked(x, y, n, BLOCK: tl.constexpr):
    """A row whose end is anywhere."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


@tilewright.jit
def gather(x, places, y, BLOCK: tl.constexpr):
    """Elements from anywhere."""
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + tl.load(places + at)))


@tilewright.jit
def transpose(x, y, BLOCK: tl.constexpr):
    """Rows become columns."""
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    tl.store(y + i * BLOCK + j, tl.trans(tl.load(x + i * BLOCK + j)))


@tilewright.jit
def matmul(a, b, c, K, sa, sb, sc, SIZE: tl.constexpr, STEP: tl.constexpr):
    """A block of a product."""
    i, k = tl.arange(0, SIZE), tl.arange(0, STEP)
    left = a + i[:, None] * sa + k[None, :]
    right = b + k[:, None] * sb + i[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(0, K, STEP):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += STEP
        right += STEP * sb
    tl.store(c + i[:, None] * sc + i[None, :], total.to(c.dtype.element_ty))


@tilewright.jit
def exact(a, c, SIZE: tl.constexpr):
    """A square in full precision."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(a + at)
    tl.store(c + at, tl.dot(x, x, input_precision="ieee"))


def product(array: np.ndarray, size: int, **options: object) -> KernelSummary:
    blocks = {"SIZE": size, "STEP": 64, "num_stages": 1}
    return explain(matmul, (array, array, array, 512, 512, 512, 512), **blocks, **options)


def test_a_row_is_taken_16_bytes_a_lane_without_a_wasted_sector() -> None:
    summary = explain(copy, (FLOATS, FLOATS, 1024), BLOCK=1024)
    for access in summary.accesses:
        assert (access.bytes_per_lane, access.instructions) == (16, 2)
        assert (access.sectors, access.ideal, access.why) == (16, 16, "")


def test_an_odd_stride_is_named_as_what_keeps_vectors_narrow() -> None:
    load, _ = explain(copy, (FLOATS, FLOATS, 1023), BLOCK=1024).accesses
    assert load.bytes_per_lane == 4 and load.is_coalesced
    assert "multiples of 4 bytes only" in load.why and "a multiple of 4" in load.why


def test_a_mask_that_may_end_anywhere_is_named() -> None:
    load, _ = explain(masked, (FLOATS, FLOATS, 1001), BLOCK=1024).accesses
    assert load.why == "the mask is known to be the same for 1 element(s) in a row only"


def test_few_elements_for_many_lanes_are_named() -> None:
    load, _ = explain(copy, (FLOATS, FLOATS, 1024), BLOCK=128).accesses
    assert load.why == "128 elements are 1 for each of 128 lanes"


def test_scattered_addresses_touch_a_sector_each_and_are_a_remark() -> None:
    scheduled = schedule(gather, (FLOATS, NUMBERS, FLOATS), BLOCK=1024)
    report = scheduled.report
    assert isinstance(report, NvidiaReport)
    kernel = find_kernel(scheduled.module)
    _, load, _ = explain_kernel(kernel, report.shared, report.ordering).accesses
    assert (load.sectors, load.ideal) == (32, 4)
    assert "not known to be adjacent" in load.why
    (remark,) = scheduled.remarks
    assert remark.startswith(f"{load.line}: the addresses of the load are not known")


def test_a_transpose_is_one_conversion_between_the_load_and_the_store() -> None:
    (conversion,) = explain(transpose, (FLOATS, FLOATS), BLOCK=64).conversions
    assert conversion.made.text.startswith("the load wants")
    assert conversion.wanted.text.startswith("the store wants")
    assert conversion.shared_bytes == 64 * 64 * 4 and conversion.conflicts == 0
    assert not conversion.in_loop and conversion.cycles > 0


def test_a_matrix_product_says_its_instruction_and_where_its_operands_are() -> None:
    summary = product(HALVES, 128)
    (found,) = summary.products
    assert found.instruction == "wgmma m64n128k16 f16"
    assert found.shape == (128, 128, 64) and found.warps == (4, 1)
    assert found.operands == "both in shared memory" and found.reason == ""
    assert [piece.size_bytes for piece in summary.shared[:2]] == [16384, 16384]
    assert summary.num_fences == 1
    assert "asynchronous read of dot" in " ".join(barrier.why for barrier in summary.barriers)


def test_operands_are_copied_to_shared_memory_without_bank_conflicts() -> None:
    staging = product(HALVES, 128).staging
    assert [staged.what for staged in staging] == ["asynchronous copy"] * 2
    assert all(staged.wavefronts == staged.ideal for staged in staging)


def test_a_product_without_matrix_instructions_is_a_remark() -> None:
    (remark,) = schedule(exact, (FLOATS, FLOATS), SIZE=64).remarks
    assert "the product runs on the FMA units: no matrix instruction takes f32 x f32" in remark


def test_a_product_by_the_smaller_instruction_says_why() -> None:
    (found,) = product(HALVES, 32).products
    assert found.instruction.startswith("mma m16n8k16")
    assert found.reason == "32 rows are no multiple of 64"


def test_without_an_assembler_everything_but_registers_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_PTXAS", raising=False)
    monkeypatch.setattr("tilewright.targets.nvidia.toolchain._candidates", lambda name: iter(()))
    file = tmp_path / "kernels.py"
    file.write_text(SCATTERED, encoding="utf-8")
    arguments = ("explain", str(file), "--target", "sm_90a", "--arg", "x=*fp32:16")
    result = CliRunner().invoke(tool, [*arguments, "--arg", "y=*fp32:16", "--arg", "BLOCK=1024"])
    assert result.exit_code == 0, result.output
    assert "kernels.py:9  tl.store(y + at, tl.load(x + at * at))" in result.output
    assert "registers are not known" in result.output
    assert "remark: " in result.output and "not known to be adjacent" in result.output


SCATTERED = '''
import tilewright
import tilewright.language as tl

@tilewright.jit
def squares(x, y, BLOCK: tl.constexpr):
    """Every element whose index is a square."""
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at * at))
'''


@tilewright.jit
def looped_product(a, b, out, n, BLOCK: tl.constexpr):
    """A product of `n` blocks."""
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(n):
        total += tl.dot(tl.load(a + k * BLOCK + at), tl.load(b + k * BLOCK + at))
    tl.store(out + at, total)


@tilewright.jit
def odd_product(a, b, out, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * stride + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(n):
        total = tl.dot(tl.load(a + k + at), tl.load(b + k + at), total)
    tl.store(out + at, total)


def test_a_loop_whose_loads_cannot_run_ahead_says_why() -> None:
    arguments = (HALVES, HALVES, FLOATS, 4)
    odd = schedule(odd_product, (*arguments[:3], 3, 5), BLOCK=64, num_stages=3).remarks
    (remark,) = [text for text in odd if "pipelined" in text]
    line = odd_product.fn.__code__.co_firstlineno + 5
    assert f"{Path(__file__).name}:{line}: the loop is not pipelined: the load at " in remark
    assert "passes registers: no 4, 8 or 16 bytes" in remark
    even = schedule(looped_product, arguments, BLOCK=64, num_stages=3).remarks
    assert not any("pipelined" in text for text in even)


def test_stages_are_part_of_what_is_compiled_for_a_gpu() -> None:
    keys = set()
    for num_stages in (1, 3, 7):
        call = looped_product.specialize_call(
            (HALVES, HALVES, FLOATS, 4), {"BLOCK": 64, "num_stages": num_stages}
        )
        request = make_request(
            call.source,
            call.specialization,
            call.options,
            DevicePlacement("nvidia", 0),
            named_machine("sm_90a"),
        )
        keys.add(request.cache_key(""))
    assert len(keys) == 3


def boxes(
    kernel: JITFunction, arguments: Sequence[object], **options: object
) -> tuple[BoxSummary, ...]:
    request = request_of(kernel, arguments, **options)
    return explain_boxes(to_tiles(request, load_target("nvidia"), None), request.machine)


@tilewright.jit
def bounded(x, y, m, n, s, BLOCK: tl.constexpr):
    """A block of a matrix, cut off at its end."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(y + i * s + j, tl.load(x + i * s + j, mask=(i < m) & (j < n)), mask=i + j < n)


def test_a_block_that_masks_cut_off_is_a_box_if_its_rows_are_aligned() -> None:
    load, store = boxes(bounded, (HALVES, HALVES, 70, 70, 70), BLOCK=32)
    assert load.line.endswith(f".py:{bounded.fn.__code__.co_firstlineno + 5}")
    assert not load.why_not
    assert load.tests[:2] == ("s is a multiple of 8", "s is at least 1")
    assert store.why_not == "its mask is no bound along a dimension"


def test_rows_that_no_mask_ends_must_not_reach_into_the_next_one() -> None:
    left, right, store = boxes(matmul, (HALVES, HALVES, HALVES, 64, 64, 64, 64), SIZE=64, STEP=32)
    assert not left.why_not and not right.why_not and not store.why_not
    assert left.tests[-1].endswith("+ 32 <= sa in every tile")
    assert right.tests[-1] == "64 <= sb in every tile"


def test_a_block_that_the_engine_does_not_hold_is_no_box() -> None:
    _, places, store = boxes(gather, (FLOATS, NUMBERS, FLOATS), BLOCK=256)
    assert "looked up" in places.why_not
    assert not store.why_not
