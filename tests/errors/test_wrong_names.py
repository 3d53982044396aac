"""Wrong programs: names, attributes and calls."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import tilewright
import tilewright.language as tl
from tests.errors.wrong import WrongPrograms, tile
from tests.plugins.goldens import Golden

wrong = WrongPrograms()
BLOCK = 64
TABLE = {1: 2}
LIMITS = (1, 2)


class Pair(NamedTuple):
    first: object
    second: object


def plain_function(x):
    return x


@tilewright.jit
def double(x, factor: tl.constexpr = 2):
    return x * factor


@tilewright.jit
def filled(size: tl.constexpr):
    return tl.sum(tl.zeros(size, tl.float32))


@tilewright.jit
def adds_tile_of_three(x):
    return x + tl.arange(0, 3)


@tilewright.jit
def forever(x):
    return forever(x)


@wrong(tile())
@tilewright.jit
def undefined_name(x):
    tl.store(x, y)  # noqa: F821


@wrong(tile())
@tilewright.jit
def plain_global_number(x):
    tl.store(x + tl.arange(0, BLOCK), 0.0)


@wrong(tile())
@tilewright.jit
def plain_global_tuple(x):
    tl.store(x, LIMITS[0])


@wrong(tile())
@tilewright.jit
def plain_global_dictionary(x):
    tl.store(x, TABLE[1])


@wrong(tile())
@tilewright.jit
def plain_function_call(x):
    tl.store(x, plain_function(tl.load(x)))


@wrong(tile())
@tilewright.jit
def name_of_an_object(x):
    tl.store(x, wrong)


@wrong(tile())
@tilewright.jit
def unknown_member_of_the_language(x):
    tl.store(x, tl.exponential(1.0))


@wrong(tile())
@tilewright.jit
def unknown_method_of_a_tile(x):
    tl.store(x, tl.load(x).exponential())


@wrong(tile())
@tilewright.jit
def unknown_attribute_of_a_constant(x):
    kind: tl.constexpr = "abc"
    tl.store(x, kind.width)


@wrong(tile(), Pair(1, 2))
@tilewright.jit
def unknown_field_of_a_tuple(x, pair):
    tl.store(x, pair.third)


@wrong(tile())
@tilewright.jit
def constant_is_no_function(x):
    size: tl.constexpr = 4
    tl.store(x, size(3))


@wrong(tile())
@tilewright.jit
def dtype_is_no_function(x):
    tl.store(x, tl.float32(3))


@wrong(tile())
@tilewright.jit
def tile_is_no_function(x):
    y = tl.load(x)
    tl.store(x, y(3))


@wrong(tile())
@tilewright.jit
def python_builtin_without_meaning(x):
    for i, j in enumerate((1, 2)):
        tl.store(x + i, j)


@wrong(tile())
@tilewright.jit
def enumerate_in_an_expression(x):
    pairs = enumerate((1, 2))
    tl.store(x, pairs)


@wrong(tile())
@tilewright.jit
def int_of_a_tile(x):
    tl.store(x, int(tl.load(x)))


@wrong(tile())
@tilewright.jit
def missing_argument_of_the_language(x):
    tl.store(x)


@wrong(tile())
@tilewright.jit
def unexpected_keyword_of_the_language(x):
    tl.store(x, tl.load(x, where=1))


@wrong(tile())
@tilewright.jit
def too_many_arguments_of_the_language(x):
    tl.store(x + tl.arange(0, 4, 2), 0.0)


@wrong(tile())
@tilewright.jit
def missing_argument_of_a_function(x):
    tl.store(x, double())


@wrong(tile())
@tilewright.jit
def argument_given_twice(x):
    tl.store(x, double(1.0, x=2.0))


@wrong(tile())
@tilewright.jit
def unexpected_keyword_of_a_function(x):
    tl.store(x, double(1.0, scale=2.0))


@wrong(tile())
@tilewright.jit
def runtime_value_for_a_constexpr_parameter(x):
    tl.store(x, filled(tl.load(x)))


@wrong(tile())
@tilewright.jit
def wrong_fields_of_a_named_tuple(x):
    pair = Pair(1, third=2)
    tl.store(x, pair.first)


@wrong(tile())
@tilewright.jit
def keywords_from_a_dictionary(x):
    tl.store(x, double(**TABLE))


@wrong(tile())
@tilewright.jit
def endless_recursion(x):
    tl.store(x, forever(1.0))


@wrong(tile())
@tilewright.jit
def error_in_a_callee(x):
    tl.store(x, adds_tile_of_three(tl.load(x)))


@wrong(tile())
@tilewright.jit
def kernel_with_keywords(x, **options):
    tl.store(x, 0.0)


@wrong(tile())
@tilewright.jit
def assigned_in_one_branch_only(x):
    if tl.load(x) > 0:
        y = 1.0
    tl.store(x, y)


@wrong(tile(), 5)
@tilewright.jit
def assigned_in_the_loop_only(x, n):
    for i in range(n):
        y = tl.load(x + i)
    tl.store(x, y)


@wrong(tile(), 5)
@tilewright.jit
def loop_variable_after_the_loop(x, n):
    for i in range(n):
        tl.store(x + i, 0.0)
    tl.store(x, i)


@wrong(tile())
@tilewright.jit
def read_before_assignment(x):
    tl.store(x, y)  # noqa: F821
    y = 1.0  # noqa: F841


@wrong(tile())
@tilewright.jit
def combine_function_of_python(x):
    tl.store(x, tl.reduce(tl.load(x + tl.arange(0, 4)), 0, plain_function))


@wrong()
@tilewright.jit
def missing_argument_of_a_launch(x):
    tl.store(x, 0.0)


@wrong(tile(), 3)
@tilewright.jit
def too_many_arguments_of_a_launch(x):
    tl.store(x, 0.0)


@wrong(tile(), y=3)
@tilewright.jit
def unexpected_keyword_of_a_launch(x):
    tl.store(x, 0.0)


@wrong(tile(), x=tile())
@tilewright.jit
def argument_of_a_launch_given_twice(x):
    tl.store(x, 0.0)


@wrong(object())
@tilewright.jit
def object_as_argument(x):
    tl.store(x, 0.0)


@wrong([1.0, 2.0])
@tilewright.jit
def list_as_argument(x):
    tl.store(x, 0.0)


@wrong(tile(dtype="complex64"))
@tilewright.jit
def array_of_complex_numbers(x):
    tl.store(x, 0.0)


@wrong(tile(), 1 << 70)
@tilewright.jit
def integer_beyond_64_bits(x, n):
    tl.store(x, n)


@wrong(tile(), 300)
@tilewright.jit
def integer_beyond_its_annotation(x, n: tl.int8):
    tl.store(x, n)


@wrong(tile(), "abc")
@tilewright.jit
def text_for_a_number(x, n: tl.int32):
    tl.store(x, n)


@wrong(tile(), tile())
@tilewright.jit
def array_as_constexpr(x, N: tl.constexpr):
    tl.store(x, N)


@wrong(tile(), 64)
@tilewright.jit(do_not_specialize=["SIZE"])
def constant_that_is_not_to_be_specialized(
    x,
    SIZE: tl.constexpr,
):
    tl.store(x + tl.arange(0, SIZE), 0.0)


@pytest.mark.parametrize("name", sorted(wrong.cases))
def test_message(name: str, golden: Golden):
    golden(f"golden/{name}", wrong.message(name))
