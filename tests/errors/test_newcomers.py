"""What people write who come from NumPy and torch: each message names the right remedy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.errors.wrong import WrongPrograms, tile
from tests.plugins.goldens import Golden

wrong = WrongPrograms()


@wrong(tile())
@tilewright.jit
def exponential_of_numpy(x):
    tl.store(x, np.exp(tl.load(x)))


@wrong(tile())
@tilewright.jit
def root_of_math(x):
    tl.store(x, math.sqrt(tl.load(x)))


@wrong(tile())
@tilewright.jit
def tangent_of_math(x):
    tl.store(x, math.tanh(tl.load(x)))


@wrong(tile())
@tilewright.jit
def dtype_of_numpy(x):
    tl.store(x, tl.load(x).to(np.float32))


@wrong(tile())
@tilewright.jit
def zeros_of_a_numpy_dtype(x):
    tl.store(x + tl.arange(0, 4), tl.zeros((4,), dtype=np.float16))


@wrong(tile())
@tilewright.jit
def dtype_of_python(x):
    tl.store(x, tl.load(x).to(float))


@wrong(tile())
@tilewright.jit
def dtype_as_text(x):
    tl.store(x, tl.load(x).to("float16"))


@wrong(tile())
@tilewright.jit
def conversion_of_numpy(x):
    tl.store(x, tl.load(x).astype(tl.float16))


@wrong(tile())
@tilewright.jit
def conversion_of_torch(x):
    tl.store(x, tl.load(x).half())


@wrong(tile())
@tilewright.jit
def mean_of_a_tile(x):
    tl.store(x, tl.load(x + tl.arange(0, 4)).mean())


@wrong(tile())
@tilewright.jit
def relu_of_the_language(x):
    tl.store(x, tl.relu(tl.load(x)))


@wrong(tile())
@tilewright.jit
def tanh_of_the_language(x):
    tl.store(x, tl.tanh(tl.load(x)))


@wrong(tile())
@tilewright.jit
def ones_of_the_language(x):
    tl.store(x + tl.arange(0, 4), tl.ones((4,), tl.float32))


@wrong(tile())
@tilewright.jit
def misspelt_function(x):
    tl.store(x, tl.maximun(tl.load(x), 0.0))


@wrong(tile())
@tilewright.jit
def unknown_function(x):
    tl.store(x, tl.frobnicate(tl.load(x)))


@wrong(tile())
@tilewright.jit
def keepdim_of_torch(x):
    tl.store(x + tl.arange(0, 1), tl.sum(tl.load(x + tl.arange(0, 4)), axis=0, keepdim=True))


@wrong(tile())
@tilewright.jit
def dim_of_torch(x):
    tl.store(x, tl.max(tl.load(x + tl.arange(0, 4)), dim=0))


@wrong(tile())
@tilewright.jit
def length_of_an_array(x):
    for i in range(len(x)):
        tl.store(x + i, 0.0)


@wrong(tile(4, 4))
@tilewright.jit
def shape_of_an_array(x):
    tl.store(x + tl.program_id(0) * x.shape[1], 0.0)


@wrong(tile(4, 4))
@tilewright.jit
def shape_of_an_array_unpacked(x):
    rows, columns = x.shape
    tl.store(x + rows * columns, 0.0)


@wrong(tile(4, 4))
@tilewright.jit
def stride_of_an_array(x):
    tl.store(x + tl.program_id(0) * x.stride(0), 0.0)


@wrong(tile())
@tilewright.jit
def element_of_an_array(x):
    tl.store(x, x[0] + 1.0)


@wrong(tile())
@tilewright.jit
def slice_of_an_array(x):
    tl.store(x, tl.sum(x[0:4], 0))


@wrong(tile())
@tilewright.jit
def assignment_to_an_array(x):
    x[0] = 1.0


@wrong(tile())
@tilewright.jit
def sum_of_an_array(x):
    tl.store(x, tl.sum(x, 0))


@wrong(tile())
@tilewright.jit
def store_with_swapped_arguments(x):
    value = tl.load(x + tl.arange(0, 4))
    tl.store(value, x + tl.arange(0, 4))


@wrong(tile())
@tilewright.jit
def store_of_a_number_with_swapped_arguments(x):
    tl.store(1.0, x)


@wrong(tile())
@tilewright.jit
def append_to_a_list(x):
    values = []
    values.append(tl.load(x))


@wrong(tile())
@tilewright.jit
def loop_over_the_elements_of_a_tile(x):
    for v in tl.load(x + tl.arange(0, 4)):
        tl.store(x, v)


@wrong(tile())
@tilewright.jit
def loop_over_a_list(x):
    for v in [1.0, 2.0]:
        tl.store(x, v)


@wrong(tile())
@tilewright.jit
def loop_over_an_array(x):
    for v in x:
        tl.store(x, v)


@wrong(tile())
@tilewright.jit
def loop_with_enumerate(x):
    for i, v in enumerate((1.0, 2.0)):
        tl.store(x + i, v)


@wrong(tile())
@tilewright.jit
def condition_with_and(x):
    v = tl.load(x + tl.arange(0, 4))
    if v > 0:
        tl.store(x, 1.0)


@wrong(tile())
@tilewright.jit
def product_with_the_operator(x):
    a = tl.load(x + tl.arange(0, 16)[:, None] + tl.arange(0, 16)[None, :])
    tl.store(x, tl.sum(a @ a))


@wrong(tile())
@tilewright.jit
def int_of_a_value(x):
    tl.store(x + int(tl.load(x)), 0.0)


@wrong(np.zeros(4, np.float32), [1, 2])
@tilewright.jit
def list_of_python(x, sizes):
    tl.store(x, sizes[0])


@pytest.mark.parametrize("name", sorted(wrong.cases))
def test_message(name: str, golden: Golden):
    golden(f"golden/{name}", wrong.message(name))
