"""Wrong programs: Python that kernels do not have."""

from __future__ import annotations

import pytest

import tilewright
import tilewright.language as tl
from tests.errors.wrong import WrongPrograms, tile
from tests.plugins.goldens import Golden

wrong = WrongPrograms()


@wrong(tile())
@tilewright.jit
def lambda_expression(x):
    f = lambda y: y + 1  # noqa: E731
    tl.store(x, f(1.0))


@wrong(tile())
@tilewright.jit
def function_inside(x):
    def f(y):
        return y + 1

    tl.store(x, f(1.0))


@wrong(tile())
@tilewright.jit
def try_statement(x):
    try:  # noqa: SIM105
        tl.store(x, 0.0)
    except ValueError:
        pass


@wrong(tile())
@tilewright.jit
def raise_statement(x):
    raise ValueError


@wrong(tile())
@tilewright.jit
def import_statement(x):
    import math

    tl.store(x, math.pi)


@wrong(tile())
@tilewright.jit
def del_statement(x):
    y = 1.0
    del y


@wrong(tile())
@tilewright.jit
def with_statement(x):
    with tl.load(x):
        pass


@wrong(tile())
@tilewright.jit
def match_statement(x):
    match tl.load(x):
        case 1:
            pass


@wrong(tile())
@tilewright.jit
def global_statement(x):
    global counter
    counter = 1


@wrong(tile())
@tilewright.jit
def dictionary_literal(x):
    table = {1: 2}
    tl.store(x, table[1])


@wrong(tile())
@tilewright.jit
def set_literal(x):
    members = {1, 2}
    tl.store(x, members)


@wrong(tile())
@tilewright.jit
def generator_expression(x):
    tl.store(x, sum(i for i in (1, 2)))


@wrong(tile())
@tilewright.jit
def nested_comprehension(x):
    values = [i * j for i in (1, 2) for j in (3, 4)]
    tl.store(x, values[0])


@wrong(tile())
@tilewright.jit
def matrix_operator(x):
    a = tl.zeros((16, 16), tl.float32)
    tl.store(x, a @ a)


@wrong(tile())
@tilewright.jit
def power_operator(x):
    tl.store(x, tl.load(x) ** 2)


@wrong(tile())
@tilewright.jit
def in_operator(x):
    if tl.load(x) in (1, 2):
        tl.store(x, 0.0)


@wrong(tile())
@tilewright.jit
def chained_assignment(x):
    a = b = 1.0
    tl.store(x, a + b)


@wrong(tile())
@tilewright.jit
def starred_target(x):
    first, *rest = (1, 2, 3)
    tl.store(x, first + rest[0])


@wrong(tile())
@tilewright.jit
def element_assignment(x):
    y = tl.zeros((4,), tl.float32)
    y[0] = 1.0
    tl.store(x, y)


@wrong(tile())
@tilewright.jit
def attribute_assignment(x):
    y = tl.load(x)
    y.scale = 1.0


@wrong(tile())
@tilewright.jit
def else_after_a_loop(x):
    for i in range(3):
        tl.store(x + i, 0.0)
    else:
        tl.store(x, 1.0)


@wrong(tile())
@tilewright.jit
def loop_over_a_tuple(x):
    for value in (1.0, 2.0):
        tl.store(x, value)


@wrong(tile())
@tilewright.jit
def loop_over_a_tile(x):
    for value in tl.load(x + tl.arange(0, 4)):
        tl.store(x, value)


@wrong(tile())
@tilewright.jit
def tile_indexed_by_an_integer(x):
    y = tl.load(x + tl.arange(0, 4))
    tl.store(x, y[0])


@wrong(tile())
@tilewright.jit
def tile_sliced(x):
    y = tl.load(x + tl.arange(0, 4))
    tl.store(x, y[0:2])


@wrong(tile())
@tilewright.jit
def too_many_indices(x):
    y = tl.load(x + tl.arange(0, 4))
    tl.store(x, y[:, :])


@wrong(tile())
@tilewright.jit
def kernel_that_returns(x):
    return tl.load(x)


@wrong(tile())
@tilewright.jit
def complex_literal(x):
    tl.store(x, 1j)


@wrong(tile())
@tilewright.jit
def unpack_too_few(x):
    a, b = (1, 2, 3)
    tl.store(x, a + b)


@wrong(tile())
@tilewright.jit
def unpack_a_tile(x):
    a, b = tl.load(x + tl.arange(0, 2))
    tl.store(x, a + b)


@wrong(tile())
@tilewright.jit
def tuple_index_out_of_range(x):
    values = (1, 2)
    tl.store(x, values[2])


@wrong(tile())
@tilewright.jit
def constant_division_by_zero(x):
    tl.store(x, 1 // 0)


@wrong(tile())
@tilewright.jit
def huge_constant(x):
    tl.store(x, 2**100000)


@wrong(tile())
@tilewright.jit
def runtime_value_in_an_f_string(x):
    tl.static_print(f"{tl.load(x)}")


@wrong(tile())
@tilewright.jit
def static_assertion(x):
    tl.static_assert(tl.load(x).dtype == tl.int32, "x holds integers")


@wrong(tile())
@tilewright.jit
def static_assertion_on_a_runtime_value(x):
    tl.static_assert(tl.load(x) > 0)


@wrong(tile())
@tilewright.jit
def yield_statement(x):
    yield tl.load(x)


@pytest.mark.parametrize("name", sorted(wrong.cases))
def test_message(name: str, golden: Golden):
    golden(f"golden/{name}", wrong.message(name))
