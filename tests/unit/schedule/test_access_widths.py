"""Lanes hold as many neighbours as make all of a kernel's accesses touch the fewest lines."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.persistent_kernels import TARGET
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_tiles
from tilewright.frontend.devices import DevicePlacement
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.schedule.layout.access_widths import AccessWidths
from tilewright.schedule.plan.accesses import DecideAccesses
from tilewright.targets.nvidia.host import named_machine

BLOCK = 1024
BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)


@tilewright.jit
def weighted(x, weight, out, stride, BLOCK: tl.constexpr):
    """A row that begins where `stride` says, times weights that begin at 16 bytes."""
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0) * stride
    product = tl.load(x + row + columns).to(tl.float32) * tl.load(weight + columns)
    tl.store(out + row + columns, product.to(out.dtype.element_ty))


@tilewright.jit
def shifted(x, out, BLOCK: tl.constexpr):
    """Each element goes to the place in front of its own."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places + 1))


@tilewright.jit
def weighted_rows(x, weight, out, rows, stride, BLOCK: tl.constexpr):
    """Every so many of the rows; the weights are loaded once."""
    columns = tl.arange(0, BLOCK)
    factors = tl.load(weight + columns)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x_row = tl.load(x + row * stride + columns).to(tl.float32)
        tl.store(out + columns, x_row * factors)


def widths_of(kernel: tilewright.JITFunction, *args: object) -> set[int]:
    """How many elements a lane has of what a kernel accesses."""
    call = kernel.specialize_call(args, {"BLOCK": BLOCK})
    machine, place = named_machine("sm_90a"), DevicePlacement("nvidia")
    request = make_request(call.source, call.specialization, call.options, place, machine)
    module = to_tiles(request, TARGET)
    DecideAccesses(machine).apply(module)
    found = AccessWidths(find_kernel(module))
    return {found.of(op)[1] for op in module.walk() if isinstance(op, LoadOp | StoreOp)}


@pytest.mark.parametrize(
    ("dtype", "stride", "width"),
    [(BF16, 4096, 8), (F32, 4096, 4), (BF16, 4097, 2), (F32, 4097, 1), (BF16, 4098, 2)],
    ids=str,
)
def test_rows_that_begin_anywhere_are_not_held_by_the_width_of_weights(
    dtype: np.dtype, stride: int, width: int
) -> None:
    x, weight, out = (np.zeros(8 * BLOCK, dtype) for _ in range(3))
    assert widths_of(weighted, x, weight, out, stride) == {width}


@pytest.mark.parametrize(("dtype", "width"), [(F32, 1), (BF16, 2), (np.dtype(np.int8), 4)], ids=str)
def test_what_is_moved_by_one_element_is_held_in_words(dtype: np.dtype, width: int) -> None:
    assert widths_of(shifted, *(np.zeros(8 * BLOCK, dtype) for _ in range(2))) == {width}


def test_what_a_loop_accesses_counts_more_than_what_stands_in_front_of_it() -> None:
    x, weight, out = (np.zeros(8 * BLOCK, F32) for _ in range(3))
    assert widths_of(weighted_rows, x[1:], weight, out, 64, 4097) == {1}
    assert widths_of(weighted_rows, x, weight, out, 64, 4096) == {4}


def test_wide_elements_in_front_of_a_loop_leave_its_accesses_four() -> None:
    x, out = np.zeros(8 * BLOCK, BF16), np.zeros(8 * BLOCK, F32)
    weight = np.zeros(BLOCK, np.int64)
    assert widths_of(weighted_rows, x, weight, out, 64, 4096) == {4}
