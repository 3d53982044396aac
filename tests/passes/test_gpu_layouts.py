"""Layout assignment: who decides a layout, what is converted, what is computed again instead."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tests.passes.laid_out import named, names, steps
from tilewright.ir.encoding import layout_of
from tilewright.ir.types import shape_of
from tilewright.jit import JITFunction
from tilewright.layout.build import wgmma_accumulator, wgmma_operand_a
from tilewright.layout.convert import RegisterPermutation, SharedRoundTrip
from tilewright.ops.function import FuncOp
from tilewright.schedule.conversions import conversion_of

F16, F32 = np.zeros(1 << 14, np.float16), np.zeros(1 << 14, np.float32)
I64 = np.zeros(1 << 14, np.int64)
CONVERT = "ttg.convert_layout"


def at_t1(kernel: JITFunction, arguments: tuple[object, ...], **options: object) -> FuncOp:
    return steps(kernel, arguments, **options)["assign-layouts"]


def moving(kernel: FuncOp) -> list[Operation]:
    """The conversions that move elements between lanes."""
    found = named(kernel, CONVERT)
    return [op for op in found if not isinstance(conversion_of(op), RegisterPermutation)]


def only(kernel: FuncOp, name: str) -> Operation:
    (op,) = named(kernel, name)
    return op


@tilewright.jit
def add(x, y, z, BLOCK: tl.constexpr):
    """z = x + y."""
    at = tl.arange(0, BLOCK)
    tl.store(z + at, tl.load(x + at) + tl.load(y + at))


@tilewright.jit
def softmax(x, y, BLOCK: tl.constexpr):
    """A row."""
    at = tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x + at))
    tl.store(y + at, e / tl.sum(e, 0))


@tilewright.jit
def columns(x, y, SIZE: tl.constexpr):
    """A tile that lies in memory column by column."""
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(y + i + j * SIZE, tl.load(x + i + j * SIZE) + 1)


@tilewright.jit
def turned(x, y, SIZE: tl.constexpr):
    """A transpose."""
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(y + i * SIZE + j, tl.load(x + j * SIZE + i))


@tilewright.jit
def matmul(a, b, c, K, SIZE: tl.constexpr, STEP: tl.constexpr):
    """c = a @ b."""
    i, k = tl.arange(0, SIZE), tl.arange(0, STEP)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, K, STEP):
        x = tl.load(a + i[:, None] * 512 + start + k[None, :])
        y = tl.load(b + (start + k)[:, None] * SIZE + i[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * SIZE + i[None, :], total)


@tilewright.jit
def attend(q, k, v, out, n, SIZE: tl.constexpr):
    """Two products in a row, the first operand the same in every step."""
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    query = tl.load(q + at)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for step in range(n):
        scores = tl.dot(query, tl.load(k + step * SIZE * SIZE + at))
        weights = tl.exp2(scores).to(tl.float16)
        total = tl.dot(weights, tl.load(v + step * SIZE * SIZE + at), total)
    tl.store(out + at, total)


@tilewright.jit
def row_sums(a, out, SIZE: tl.constexpr):
    """Sums of the rows of a product."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(a + at)
    tl.store(out + tl.arange(0, SIZE), tl.sum(tl.dot(x, x), 1))


@tilewright.jit
def mixed(x, places, y, SIZE: tl.constexpr):
    """Elements of 2 bytes at places of 8."""
    at = tl.arange(0, SIZE)
    tl.store(y + at, tl.load(x + tl.load(places + at)))


def test_arithmetic_on_loads_of_one_shape_needs_no_conversion() -> None:
    kernel = at_t1(add, (F32, F32, F32), BLOCK=1024)
    assert CONVERT not in names(kernel)
    loads = named(kernel, "tt.load")
    assert len({layout_of(op.results[0].type) for op in loads}) == 1
    assert all(op.attributes["tw.access"].data.vector == 4 for op in loads)


def test_a_reduction_and_what_depends_on_it_stay_where_the_load_is() -> None:
    assert CONVERT not in names(at_t1(softmax, (F32, F32), BLOCK=4096))


def test_lanes_follow_the_order_of_the_memory() -> None:
    kernel = at_t1(columns, (F32, F32), SIZE=64)
    layout = layout_of(only(kernel, "tt.load").results[0].type)
    assert layout.basis_images("register")[0] == (1, 0)
    assert CONVERT not in names(kernel)


def test_a_transpose_is_converted_once_through_shared_memory() -> None:
    (conversion,) = moving(steps(turned, (F32, F32), SIZE=64)["decide-exchanges"])
    assert isinstance(conversion_of(conversion), SharedRoundTrip)


def test_an_accumulator_stays_in_the_layout_of_its_instruction_around_the_loop() -> None:
    kernel = at_t1(matmul, (F16, F16, F32, 512), SIZE=128, STEP=64, num_consumer_groups=0)
    dot = only(kernel, "ttg.dot")
    layout = layout_of(dot.results[0].type)
    assert layout == wgmma_accumulator((128, 128), (4, 1), 128)
    loop = only(kernel, "scf.for")
    carried = [arg for arg in loop.body.block.args[1:] if shape_of(arg.type) == (128, 128)]
    assert [layout_of(arg.type) for arg in carried] == [layout]
    assert moving(loop) == []


def test_offsets_are_computed_again_in_each_layout_and_not_converted() -> None:
    kernel = at_t1(matmul, (F16, F16, F32, 512), SIZE=128, STEP=64, num_consumer_groups=0)
    assert moving(kernel) == []
    assert len(named(kernel, "tt.make_range")) > 2


def test_weights_of_attention_go_from_one_product_to_the_next_in_registers() -> None:
    kernel = at_t1(attend, (F16, F16, F16, F32, 4), SIZE=64)
    first, second = named(kernel, "ttg.dot")
    assert layout_of(second.operands[0].type) == wgmma_operand_a((64, 64), 16, (4, 1))
    assert moving(kernel) == []
    assert first.operands[0].type.name == "ttg.memdesc"


def test_an_operand_that_the_loop_does_not_change_is_staged_before_it() -> None:
    kernel = at_t1(attend, (F16, F16, F16, F32, 4), SIZE=64)
    loop = only(kernel, "scf.for")
    outside = [op for op in named(kernel, "ttg.local_alloc") if op.parent_op() is not loop]
    assert len(outside) == 1


def test_sums_of_rows_are_taken_where_the_product_left_them() -> None:
    kernel = at_t1(row_sums, (F16, F32), SIZE=64)
    reduce = only(kernel, "tt.reduce")
    assert layout_of(reduce.operands[0].type) == wgmma_accumulator((64, 64), (4, 1), 64)


def test_accesses_of_one_shape_share_the_layout_of_the_widest() -> None:
    kernel = at_t1(mixed, (F16, I64, F16), SIZE=2048)
    layouts = {layout_of(op.operands[0].type) for op in named(kernel, "tt.load")}
    assert len(layouts) == 1
    widths = [op.attributes["tw.access"].data.vector for op in named(kernel, "tt.load")]
    assert widths == [2, 1]


@pytest.mark.parametrize(
    ("dtype", "size", "instruction", "reason"),
    [
        (np.float16, 64, "wgmma", None),
        (np.float16, 32, "mma", "32 rows are no multiple of 64"),
        (np.float64, 32, "fma", "no matrix instruction takes f64 x f64 (tf32)"),
    ],
)
def test_the_fastest_instruction_that_fits_is_planned(
    dtype: type, size: int, instruction: str, reason: str | None
) -> None:
    array = np.zeros(1 << 14, dtype)
    kernel = at_t1(row_sums, (array, np.zeros(1 << 14, np.float64)), SIZE=size)
    dot = only(kernel, "ttg.dot")
    plan = dot.properties["product"].data
    assert plan.instruction == instruction
    assert plan.reason == (reason or "")


@pytest.mark.parametrize("num_warps", [1, 2])
def test_less_than_a_warp_group_takes_the_smaller_instruction(num_warps: int) -> None:
    kernel = at_t1(row_sums, (F16, F32), SIZE=64, num_warps=num_warps)
    assert only(kernel, "ttg.dot").properties["product"].data.instruction == "mma"
