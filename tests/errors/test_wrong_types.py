"""Wrong programs: types, shapes, compile-time values and control flow."""

from __future__ import annotations

import pytest

import tilewright
import tilewright.language as tl
from tests.errors.wrong import WrongPrograms, tile
from tests.plugins.goldens import Golden

wrong = WrongPrograms()


@tilewright.jit
def one_or_nothing(value):
    if value > 0:
        return 1.0


@tilewright.jit
def float_or_integer(value):
    if value > 0:
        return 1.0
    return 1


@wrong(tile(), 64)
@tilewright.jit
def arange_of_a_runtime_value(x, n):
    tl.store(x + tl.arange(0, n), 0.0)


@wrong(tile(), 64)
@tilewright.jit
def constexpr_of_a_runtime_value(x, n):
    size: tl.constexpr = n + 1
    tl.store(x + tl.arange(0, size), 0.0)


@wrong(tile())
@tilewright.jit
def arange_of_an_assigned_number(x):
    size = 64
    tl.store(x + tl.arange(0, size), 0.0)


@wrong(tile())
@tilewright.jit
def arange_of_three(x):
    tl.store(x + tl.arange(0, 3), 0.0)


@wrong(tile())
@tilewright.jit
def tile_too_large(x):
    y = tl.zeros((2048, 1024), tl.float32)
    tl.store(x, tl.sum(y))


@wrong(tile())
@tilewright.jit
def shapes_that_do_not_broadcast(x):
    y = tl.arange(0, 4) + tl.arange(0, 8)
    tl.store(x, tl.sum(y))


@wrong(tile())
@tilewright.jit
def mask_of_another_shape(x):
    y = tl.load(x + tl.arange(0, 8), mask=tl.arange(0, 4) < 2)
    tl.store(x, tl.sum(y))


@wrong(tile())
@tilewright.jit
def value_of_fewer_dimensions(x):
    offsets = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(x + offsets, tl.arange(0, 8).to(tl.float32))


@wrong(tile())
@tilewright.jit
def mask_that_is_no_boolean(x):
    tl.store(x + tl.arange(0, 8), 0.0, mask=tl.arange(0, 8))


@wrong(tile())
@tilewright.jit
def other_without_mask(x):
    tl.store(x, tl.load(x, other=0.0))


@wrong(tile())
@tilewright.jit
def load_from_a_number(x):
    tl.store(x, tl.load(5))


@wrong(tile())
@tilewright.jit
def load_from_an_integer_tile(x):
    tl.store(x, tl.sum(tl.load(tl.arange(0, 8))))


@wrong(tile())
@tilewright.jit
def store_a_tile_through_a_scalar_pointer(x):
    tl.store(x, tl.arange(0, 8))


@wrong(tile())
@tilewright.jit
def store_through_a_const_pointer(x: tl.const):
    tl.store(x, 0.0)


@wrong(tile(), tile())
@tilewright.jit
def sum_of_pointers(x, y):
    tl.store(x + y, 0.0)


@wrong(tile())
@tilewright.jit
def pointer_plus_float(x):
    tl.store(x + 1.5, 0.0)


@wrong(tile())
@tilewright.jit
def pointer_times_two(x):
    tl.store(x * 2, 0.0)


@wrong(tile())
@tilewright.jit
def floor_division_of_floats(x):
    tl.store(x, tl.load(x) // 2.0)


@wrong(tile())
@tilewright.jit
def bits_of_floats(x):
    tl.store(x, tl.load(x) & 1)


@wrong(tile(dtype="int32"))
@tilewright.jit
def not_of_an_integer(x):
    tl.store(x, not tl.load(x))


@wrong(tile(dtype="int8"))
@tilewright.jit
def literal_beyond_int8(x):
    tl.store(x, tl.load(x) + 200)


@wrong(tile(dtype="uint8"))
@tilewright.jit
def negative_literal_beside_unsigned(x):
    tl.store(x, tl.load(x) + -1)


@wrong(tile(dtype="int32"), tile(dtype="uint32"))
@tilewright.jit
def mixed_signedness_in_a_remainder(x, y):
    tl.store(x, tl.load(x) % tl.load(y))


@wrong(tile())
@tilewright.jit
def text_as_an_operand(x):
    tl.store(x, tl.load(x) + "1")


@wrong(tile())
@tilewright.jit
def none_as_an_operand(x):
    tl.store(x, tl.load(x) + None)


@wrong(tile(), None)
@tilewright.jit
def pointer_that_is_none(x, y):
    tl.store(x, tl.load(y))


@wrong(tile())
@tilewright.jit
def dot_of_mismatched_shapes(x):
    a = tl.zeros((16, 32), tl.float32)
    b = tl.zeros((16, 32), tl.float32)
    tl.store(x, tl.sum(tl.dot(a, b)))


@wrong(tile())
@tilewright.jit
def dot_into_bfloat16(x):
    a = tl.zeros((16, 16), tl.float16)
    product = tl.dot(a, a, out_dtype=tl.bfloat16)
    tl.store(x, tl.sum(product))


@wrong(tile())
@tilewright.jit
def dot_of_more_imprecise_steps_than_it_has(x):
    a = tl.zeros((16, 32), tl.float8e5)
    product = tl.dot(a, tl.trans(a), max_num_imprecise_acc=64)
    tl.store(x, tl.sum(product))


@wrong(tile())
@tilewright.jit
def dot_of_mixed_types(x):
    a = tl.zeros((16, 16), tl.float32)
    b = tl.zeros((16, 16), tl.float16)
    tl.store(x, tl.sum(tl.dot(a, b)))


@wrong(tile())
@tilewright.jit
def axis_out_of_range(x):
    tl.store(x, tl.sum(tl.zeros((4, 4), tl.float32), axis=2))


@wrong(tile())
@tilewright.jit
def reshape_to_another_size(x):
    y = tl.reshape(tl.zeros((4, 4), tl.float32), (8, 4))
    tl.store(x, tl.sum(y))


@wrong(tile(dtype="float16"))
@tilewright.jit
def exponential_of_half_precision(x):
    tl.store(x, tl.exp(tl.load(x)))


@wrong(tile())
@tilewright.jit
def cast_to_a_number(x):
    tl.store(x, tl.load(x).to(16))


@wrong(tile())
@tilewright.jit
def unknown_cache_modifier(x):
    tl.store(x, tl.load(x, cache_modifier=".never"))


@wrong(tile())
@tilewright.jit
def program_id_of_a_fourth_axis(x):
    tl.store(x, tl.program_id(3))


@wrong(tile())
@tilewright.jit
def condition_on_a_tile(x):
    if tl.load(x + tl.arange(0, 4)) > 0:
        tl.store(x, 0.0)


@wrong(tile())
@tilewright.jit
def condition_on_a_dtype(x):
    if tl.float32:
        tl.store(x, 0.0)


@wrong(tile(), 3)
@tilewright.jit
def assertion_of_a_variable_that_is_a_tuple(x, n):
    both = (n > 5, "more than 5")
    tl.device_assert(both)
    tl.store(x, 0.0)


@wrong(tile())
@tilewright.jit
def loop_while_a_tile(x):
    y = tl.load(x + tl.arange(0, 4))
    while y > 0:
        y -= 1


@wrong(tile())
@tilewright.jit
def branches_with_two_types(x):
    if tl.load(x) > 0:
        y = 1.0
    else:
        y = 1
    tl.store(x, y)


@wrong(tile())
@tilewright.jit
def branches_with_two_shapes(x):
    y = tl.zeros((4,), tl.float32)
    if tl.load(x) > 0:
        y = tl.zeros((8,), tl.float32)
    tl.store(x, tl.sum(y))


@wrong(tile())
@tilewright.jit
def branches_with_two_dtypes(x):
    kind = tl.float32
    if tl.load(x) > 0:
        kind = tl.float16
    tl.store(x, tl.load(x).to(kind))


@wrong(tile())
@tilewright.jit
def ternary_with_two_types(x):
    tl.store(x, 1.0 if tl.load(x) > 0 else 1)


@wrong(tile(), 5)
@tilewright.jit
def loop_that_changes_a_type(x, n):
    total = 0
    for i in range(n):
        total += tl.load(x + i)
    tl.store(x, total)


@wrong(tile(), 5)
@tilewright.jit
def loop_that_changes_a_shape(x, n):
    total = 0.0
    for i in range(n):
        total = total + tl.load(x + i + tl.arange(0, 4))
    tl.store(x, tl.sum(total))


@wrong(tile(), 5)
@tilewright.jit
def loop_that_replaces_none(x, n):
    best = None
    for i in range(n):
        best = tl.load(x + i)
    tl.store(x, best)


@wrong(tile())
@tilewright.jit
def function_without_return_on_a_path(x):
    tl.store(x, one_or_nothing(tl.load(x)))


@wrong(tile())
@tilewright.jit
def function_with_two_types(x):
    tl.store(x, float_or_integer(tl.load(x)))


@wrong(tile())
@tilewright.jit
def loop_with_step_zero(x):
    for i in range(0, 8, 0):
        tl.store(x + i, 0.0)


@wrong(tile())
@tilewright.jit
def loop_over_a_float(x):
    for i in range(2.5):
        tl.store(x + i, 0.0)


@wrong(tile(), 5)
@tilewright.jit
def static_range_of_a_runtime_value(x, n):
    for i in tl.static_range(n):
        tl.store(x + i, 0.0)


@wrong(tile())
@tilewright.jit
def static_range_without_end(x):
    for i in tl.static_range(1_000_000):
        tl.store(x + i, 0.0)


@wrong(tile())
@tilewright.jit
def unknown_hint_of_a_loop(x):
    for i in tl.range(4, num_stage=3):
        tl.store(x + i, 0.0)


@wrong(tile(), 5)
@tilewright.jit
def runtime_hint_of_a_loop(x, n):
    for i in tl.range(4, num_stages=n):
        tl.store(x + i, 0.0)


@wrong(tile())
@tilewright.jit
def negative_hint_of_a_loop(x):
    for i in tl.range(4, num_stages=-2):
        tl.store(x + i, 0.0)


@wrong(tile())
@tilewright.jit
def number_too_large_for_its_tile(x):
    tl.store(x, tl.full((4,), 300, tl.int8).sum().to(tl.float32))


@wrong(tile(), 5)
@tilewright.jit
def tuple_indexed_at_run_time(x, n):
    values = (1.0, 2.0)
    tl.store(x, values[n])


@tilewright.jit
def add_and_print(a, b):
    tl.device_print("a", a)
    return a + b


@wrong(tile(64))
@tilewright.jit
def print_in_a_combine_function(x):
    tl.store(x, tl.reduce(tl.load(x + tl.arange(0, 64)), 0, add_and_print))


@tilewright.jit
def add_and_load(a, b):
    return a + tl.load(b.to(tl.int64).to(tl.pointer_type(tl.float32)))


@wrong(tile(64))
@tilewright.jit
def load_in_a_combine_function(x):
    at = tl.arange(0, 64)
    tl.store(x + at, tl.associative_scan(tl.load(x + at), 0, add_and_load))


@wrong(tile(64, dtype="int32"))
@tilewright.jit
def softmax_of_integers(x):
    at = tl.arange(0, 64)
    tl.store(x + at, tl.softmax(tl.load(x + at)))


@wrong(tile(64), debug=True)
@tilewright.jit
def expect_zero_of_pointers(x):
    tl.expect_zero(x + tl.arange(0, 64), tl.arange(0, 64) < 3)


@wrong(tile(64))
@tilewright.jit
def tile_that_grows_too_large(x):
    at = tl.arange(0, 2048)
    tl.store(x + (at[:, None] + at[None, :]) % 64, 1.0)


@wrong(tile(64))
@tilewright.jit
def decorator_in_a_kernel(x):
    tl.store(x, tl.constexpr_function(x))


@pytest.mark.parametrize("name", sorted(wrong.cases))
def test_message(name: str, golden: Golden):
    golden(f"golden/{name}", wrong.message(name))
