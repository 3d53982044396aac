"""Phrases by which programs written for Triton tell errors apart: under its name ours say them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tests.api.alias  # noqa: F401 - puts `triton` on the path
import tilewright

import triton  # isort: skip
import triton.language as tl  # isort: skip

CASES: dict[str, tuple[tilewright.JITFunction, str]] = {}


def says(phrase: str) -> Callable[[tilewright.JITFunction], tilewright.JITFunction]:
    """Register a kernel of one float pointer with what its error says."""

    def register(kernel: tilewright.JITFunction) -> tilewright.JITFunction:
        CASES[kernel.fn.__name__] = (kernel, phrase)
        return kernel

    return register


GLOBAL = 42


@says("invalid operands of type pointer<fp32> and pointer<fp32>")
@triton.jit
def sum_of_pointers(p):
    tl.store(p, tl.load(p + p))


@says("invalid operands of type pointer<fp32> and fp32")
@triton.jit
def pointer_and_float(p):
    tl.store(p + tl.load(p), 1.0)


@says("invalid operands of type pointer<fp32> and int32")
@triton.jit
def product_of_a_pointer(p):
    tl.store(p * 2, 1.0)


@says("invalid operands of type fp32 and fp32")
@triton.jit
def bits_of_floats(p):
    x = tl.load(p)
    tl.store(p, x & x)


@says("invalid operands of type fp32 and fp32")
@triton.jit
def shift_of_a_float(p):
    tl.store(p, tl.load(p) << 1)


@says("is not defined")
@triton.jit
def undefined_variable(p):
    a += 1  # noqa: F821, F841


@says("global variable")
@triton.jit
def plain_global(p):
    tl.store(p, GLOBAL)


@says("arange's range must be a power of 2")
@triton.jit
def range_of_five(p):
    tl.store(p + tl.arange(2, 7), 1.0)


@says("arange's end argument must be greater than the start argument")
@triton.jit
def empty_range(p):
    tl.store(p + tl.arange(4, 4), 1.0)


@says("arange's arguments must be of type tl.constexpr")
@triton.jit
def range_of_a_runtime_value(p):
    tl.store(p + tl.arange(0, tl.program_id(0)), 1.0)


@says("Shape element 0 must be a power of 2")
@triton.jit
def shape_of_33(p):
    tl.store(p, tl.sum(tl.full((33,), 0.0, tl.float32)))


@says("Shape element 1 must be a power of 2")
@triton.jit
def shape_of_4_and_3(p):
    tl.store(p, tl.sum(tl.zeros((4, 3), tl.float32)))


@says("exceeds triton maximum tensor numel (1048576)")
@triton.jit
def huge_tile(p):
    tl.store(p, tl.sum(tl.zeros((2048, 1024), tl.float32)))


@says("incompatible dimensions at index 0: 4 and 8")
@triton.jit
def shapes_that_differ(p):
    tl.store(p, tl.sum(tl.zeros((4,), tl.float32) + tl.zeros((8,), tl.float32)))


@says("Cannot bitcast data-type of size 32 to data-type of size 16")
@triton.jit
def bitcast_to_half(p):
    tl.store(p, tl.load(p).to(tl.float16, bitcast=True))


@says("cannot change total number of elements in tensor")
@triton.jit
def reshape_of_another_size(p):
    tl.store(p, tl.sum(tl.reshape(tl.zeros((8,), tl.float32), (4, 4))))


@says("Unsupported ptr type fp32 in `tl.load`")
@triton.jit
def load_from_a_value(p):
    tl.store(p, tl.load(tl.load(p)))


@says("Unsupported ptr type fp32 in `tl.store`")
@triton.jit
def store_to_a_value(p):
    tl.store(tl.load(p), 1.0)


@says("`other` cannot be provided without `mask`")
@triton.jit
def other_without_mask(p):
    tl.store(p, tl.load(p, other=1.0))


@says("Mask argument cannot be block type if pointer argument is not a block")
@triton.jit
def tile_as_mask_of_a_scalar(p):
    tl.store(p, tl.load(p, mask=tl.arange(0, 4) < 2))


@says("Value argument cannot be block type if pointer argument is not a block")
@triton.jit
def tile_through_a_scalar_pointer(p):
    tl.store(p, tl.zeros((4,), tl.float32))


@says("Mask must have boolean scalar type")
@triton.jit
def integer_mask(p):
    tl.store(p, 1.0, mask=tl.program_id(0))


@says("Mismatched type for x between then block (fp32) and else block (int32)")
@triton.jit
def branches_that_differ(p):
    if tl.load(p) > 0:
        x = 1.0
    else:
        x = 2
    tl.store(p, x)


@says("Loop-carried variable x has initial type int32 but is re-assigned to fp32 in loop")
@triton.jit
def loop_that_changes_a_type(p):
    x = 0
    for _ in range(3):
        x = x + 1.5
    tl.store(p, x)


@says("Expected dtype ['fp32', 'fp64'] but got fp16")
@triton.jit
def exponential_of_half(p):
    tl.store(p, tl.exp(tl.load(p).to(tl.float16)))


@says("program_id axis must be 0, 1, or 2 but got 3")
@triton.jit
def fourth_axis(p):
    tl.store(p, tl.program_id(3))


@says("invalid axis 2. Expected -1 <= axis < 1")
@triton.jit
def sum_over_a_missing_axis(p):
    tl.store(p, tl.sum(tl.zeros((4,), tl.float32), 2))


@says("second index of first shape (64) must be equal to first index of second shape (32)")
@triton.jit
def product_of_other_sizes(p):
    tl.store(p, tl.sum(tl.dot(tl.zeros((16, 64), tl.float16), tl.zeros((32, 16), tl.float16))))


@says("Scalar 200 is out of range for type int8")
@triton.jit
def literal_out_of_range(p):
    tl.store(p, tl.load(p).to(tl.int8) + 200)


@says("too many values to unpack")
@triton.jit
def unpack_too_many(p):
    _a, _b = (1, 2, 3)


@says("not enough values to unpack (expected 3, got 2)")
@triton.jit
def unpack_too_few(p):
    _a, _b, _c = (1, 2)


@says("starred assignment targets are not supported")
@triton.jit
def starred_target(p):
    _a, *_b = (1, 2)


@says("unsupported tensor index")
@triton.jit
def element_of_a_tile(p):
    tl.store(p, tl.arange(0, 4)[0])


@pytest.mark.parametrize("name", sorted(CASES))
def test_message_contains(name: str):
    kernel, phrase = CASES[name]
    with pytest.raises(triton.CompilationError) as caught:
        kernel.warmup(np.zeros(64, np.float32), grid=(1,))
    assert phrase in str(caught.value)
