"""Native calls of a kernel: every way of writing a call, many specialisations, references."""

from __future__ import annotations

import sys
import threading
from types import BuiltinFunctionType
from typing import NamedTuple

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.runtime.warm import MAX_WAYS
from tilewright.support.errors import InvalidGrid


def make_kernel():
    @tilewright.jit
    def scale_kernel(x_ptr, out_ptr, n, factor=2.0, shift=1, BLOCK: tl.constexpr = 64):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, (x * factor + shift).to(x.dtype), mask=mask)

    return scale_kernel


X = np.arange(100, dtype=np.float32)


class Extents(NamedTuple):
    rows: int


def calls():
    """Ways of writing the same call, after the grid."""
    return {
        "positional": lambda k, out: k[(2,)](X, out, 100),
        "all": lambda k, out: k[(2,)](X, out, 100, 2.0, 1, 64),
        "keywords": lambda k, out: k[(2,)](n=100, out_ptr=out, x_ptr=X),
        "some": lambda k, out: k[(2,)](X, out, n=100, BLOCK=64),
        "option": lambda k, out: k[(2,)](X, out, 100, num_warps=8),
        "unpacked": lambda k, out: k[(2,)](*(X, out), **{"n": 100}),
        "stream": lambda k, out: k[(2,)](X, out, 100, stream=5),
        "two axes": lambda k, out: k[(2, 1)](X, out, 100),
        "callable grid": lambda k, out: k[lambda meta: (128 // meta["BLOCK"],)](X, out, 100),
        "list grid": lambda k, out: k[[2]](X, out, 100),
        "named grid": lambda k, out: k[Extents(2)](X, out, 100),  # as torch.Size, a tuple's class
    }


@pytest.mark.parametrize("name", calls())
def test_every_way_of_writing_a_call_gives_the_same(name):
    kernel, call = make_kernel(), calls()[name]
    for _ in range(3):
        out = np.zeros_like(X)
        call(kernel, out)
        np.testing.assert_array_equal(out, X * 2 + 1)


def test_one_kernel_is_called_in_every_way_in_turn():
    kernel = make_kernel()
    for _ in range(3):
        for call in calls().values():
            out = np.zeros_like(X)
            call(kernel, out)
            np.testing.assert_array_equal(out, X * 2 + 1)


def test_the_second_call_is_native():
    kernel = make_kernel()
    assert not isinstance(kernel._entry, BuiltinFunctionType)
    first = kernel[(2,)](X, np.zeros_like(X), 100)
    assert isinstance(kernel._entry, BuiltinFunctionType)
    kernel._launch_slowly = None
    kernel._shapes.clear()
    assert kernel[(2,)](X, np.zeros_like(X), 100) is first


def test_defaults_of_the_other_kind_are_kept_apart():
    kernel = make_kernel()
    for factor, shift in ((2.0, 1), (3.0, 5), (2.0, 1), (0.5, -4)):
        out = np.zeros_like(X)
        kernel[(2,)](X, out, 100, factor, shift)
        np.testing.assert_array_equal(out, X * factor + shift)
        kernel[(2,)](X, out, 100)
        np.testing.assert_array_equal(out, X * 2 + 1)


def test_more_specialisations_than_ways_are_all_right():
    kernel = make_kernel()
    dtypes = [np.float32, np.float64, np.int32, np.int64, np.int16, np.float16]
    blocks = [16, 32, 64]
    assert len(dtypes) * len(blocks) > MAX_WAYS
    for _ in range(2):
        for dtype in dtypes:
            for block in blocks:
                x, out = np.arange(50).astype(dtype), np.zeros(50, dtype)
                kernel[(4,)](x, out, 50, BLOCK=block)
                np.testing.assert_array_equal(out, x * 2 + 1)


def test_a_grid_function_sees_every_argument_and_is_called_once():
    kernel, seen = make_kernel(), []

    def grid(meta):
        seen.append(dict(meta))
        return (2,)

    for _ in range(3):
        out = np.zeros_like(X)
        kernel[grid](X, out, 100, BLOCK=64)
        np.testing.assert_array_equal(out, X * 2 + 1)
        assert seen.pop() == {
            **{"x_ptr": X, "out_ptr": out, "n": 100, "factor": 2.0, "shift": 1, "BLOCK": 64}
        }
        assert seen == []


@pytest.mark.parametrize("answer", [2, [2], (2, 1, 1), np.int64(2)])
def test_a_grid_function_may_give_what_a_grid_may_be(answer):
    kernel = make_kernel()
    for _ in range(3):
        out = np.zeros_like(X)
        kernel[lambda meta: answer](X, out, 100)
        np.testing.assert_array_equal(out, X * 2 + 1)


def test_a_grid_function_that_raises_stops_the_launch():
    kernel = make_kernel()
    out = np.zeros_like(X)
    kernel[(2,)](X, out, 100)
    with pytest.raises(KeyError, match="NO_SUCH"):
        kernel[lambda meta: (meta["NO_SUCH"],)](X, out, 100)


def test_grid_functions_keep_no_references():
    kernel = make_kernel()
    out = np.zeros_like(X)

    def grid(meta):
        return shared

    shared = (2,)
    kernel[grid](X, out, 100)
    watched = (shared, grid, X, out)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1000):
        kernel[grid](X, out, 100)
    after = [sys.getrefcount(item) for item in watched]
    assert all(abs(b - a) < 10 for a, b in zip(before, after, strict=True))


def test_a_wrong_grid_is_refused_after_right_ones():
    kernel = make_kernel()
    out = np.zeros_like(X)
    for grid in ((1.5,), (1, 1, 1, 1), (-1,), ("2",)):
        kernel[(2,)](X, out, 100)
        with pytest.raises(InvalidGrid):
            kernel[grid](X, out, 100)


def test_a_wrong_call_is_refused_after_right_ones():
    kernel = make_kernel()
    out = np.zeros_like(X)
    kernel[(2,)](X, out, 100)
    with pytest.raises(tilewright.CompileError):
        kernel[(2,)](X, out)
    with pytest.raises(tilewright.CompileError):
        kernel[(2,)](X, out, 100, other=3)


def test_calls_keep_no_references():
    kernel = make_kernel()
    out = np.zeros_like(X)
    compiled = kernel[(2,)](X, out, 100)
    grid = (2,)
    watched = (compiled, X, out, grid, None, kernel)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1000):
        kernel[grid](X, out, 100)
    after = [sys.getrefcount(item) for item in watched]
    assert all(abs(b - a) < 10 for a, b in zip(before, after, strict=True))


def test_threads_that_learn_new_ways_do_not_disturb_each_other():
    kernel = make_kernel()
    failures = []

    def run(dtype):
        x = np.arange(64).astype(dtype)
        for block in (16, 32, 64) * 10:
            out = np.zeros(64, dtype)
            kernel[(4,)](x, out, 64, BLOCK=block)
            if not np.array_equal(out, x * 2 + 1):
                failures.append((dtype, block))

    threads = [threading.Thread(target=run, args=(d,)) for d in (np.float32, np.int32, np.int64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def descriptor_kernel():
    @tilewright.jit
    def move_kernel(source, target, factor, BLOCK: tl.constexpr):
        row = tl.program_id(0) * BLOCK
        target.store([row, 0], source.load([row, 0]) * factor)

    return move_kernel


def launchers_of(kernel):
    return [launcher for shape in kernel._shapes.values() for launcher in shape.launchers]


def described(array, block=(16, 16)):
    return TensorDescriptor.from_tensor(array, block)


def test_descriptors_take_the_native_path():
    kernel = descriptor_kernel()
    for step in range(5):
        x = np.random.default_rng(step).standard_normal((32, 16), dtype=np.float32)
        out = np.zeros_like(x)
        kernel[(2,)](described(x), described(out), 2.0, BLOCK=16)
        np.testing.assert_array_equal(out, 2 * x)
    assert len(launchers_of(kernel)) == 1


def test_descriptors_of_other_shapes_strides_and_blocks_are_right():
    kernel = descriptor_kernel()
    rng = np.random.default_rng(0)
    for _ in range(2):
        for height, width, block in ((32, 16, 16), (64, 16, 16), (32, 16, 8), (20, 16, 16)):
            whole = rng.standard_normal((height, 32), dtype=np.float32)
            x, out = whole[:, :width], np.zeros((height, width), np.float32)
            source = described(x, (block, 16))
            kernel[(8,)](source, described(out, (block, 16)), 3.0, BLOCK=block)
            np.testing.assert_array_equal(out, 3 * x)
    assert len(launchers_of(kernel)) == 2


def test_a_descriptor_of_other_elements_or_padding_is_compiled_for():
    kernel = descriptor_kernel()
    for dtype in (np.float32, np.int32, np.float32):
        x = np.arange(512).reshape(32, 16).astype(dtype)
        out = np.zeros_like(x)
        kernel[(2,)](described(x), described(out), 2, BLOCK=16)
        np.testing.assert_array_equal(out, 2 * x)
    x = np.ones((20, 16), np.float32)
    for padding, expected in (("zero", 0), ("nan", np.nan)):
        out = np.full((32, 16), 5, np.float32)
        source = TensorDescriptor.from_tensor(x, (16, 16), padding)
        kernel[(2,)](source, described(out), 1, BLOCK=16)
        np.testing.assert_array_equal(out[20:], np.full((12, 16), expected, np.float32))


@tilewright.jit
def store_default(out, number=1e300):
    tl.store(out, number)


def test_a_default_beyond_fp32_is_infinite_in_every_call():
    for _ in range(4):
        out = np.zeros(1, np.float32)
        store_default[(1,)](out)
        assert out[0] == np.inf
