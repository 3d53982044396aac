"""What control flow means: kernels on the reference interpreter beside the same Python."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


def run(kernel: tilewright.JITFunction, values: list[float], *arguments: object) -> list[float]:
    """Run `kernel(x, out, *arguments)` as one program and give what it stored."""
    x = np.array(values, np.float32)
    out = np.zeros(8, np.float32)
    kernel.interpret[(1,)](x, out, *arguments)
    return out.tolist()


@tilewright.jit
def sum_until_negative(x, out, n):
    total = 0.0
    for i in range(n):
        value = tl.load(x + i)
        if value < 0:
            break
        total += value
    tl.store(out, total)


def test_break_ends_the_loop():
    assert run(sum_until_negative, [1, 2, 3, -1, 5], 5)[0] == 6
    assert run(sum_until_negative, [1, 2, 3], 3)[0] == 6
    assert run(sum_until_negative, [-1, 2, 3], 3)[0] == 0


@tilewright.jit
def sum_of_positive(x, out, n):
    total = 0.0
    count = 0
    for i in range(n):
        value = tl.load(x + i)
        if value <= 0:
            continue
        total += value
        count += 1
    tl.store(out, total)
    tl.store(out + 1, count.to(tl.float32))


def test_continue_skips_the_rest_of_the_body():
    assert run(sum_of_positive, [1, -2, 3, 0, 5], 5)[:2] == [9, 3]


@tilewright.jit
def continue_with_an_assignment(x, out, n):
    total = 0.0
    for i in range(n):
        value = tl.load(x + i)
        if value < 0:
            total -= value
            continue
        if value > 10:
            total += 10.0
        else:
            if value == 5:
                continue
            total += value
    tl.store(out, total)


def test_continue_keeps_what_its_branch_assigned():
    assert run(continue_with_an_assignment, [1, -2, 30, 5, 4], 5)[0] == 1 + 2 + 10 + 4


@tilewright.jit
def find(x, n, wanted):
    for i in range(n):
        if tl.load(x + i) == wanted:
            return i
    return -1


@tilewright.jit
def find_kernel(x, out, n, wanted):
    tl.store(out, find(x, n, wanted).to(tl.float32))


@pytest.mark.parametrize(("wanted", "index"), [(4.0, 0), (6.0, 2), (9.0, -1)])
def test_return_in_a_loop_gives_its_value(wanted: float, index: int):
    assert run(find_kernel, [4, 5, 6, 6], 4, wanted)[0] == index


@tilewright.jit
def find_in_rows(x, out, rows, columns, wanted):
    found = -1
    for row in range(rows):
        for column in range(columns):
            if tl.load(x + row * columns + column) == wanted:
                found = row * 10 + column
                break
        if found >= 0:
            break
    tl.store(out, found.to(tl.float32))


@pytest.mark.parametrize(("wanted", "found"), [(1.0, 0), (6.0, 12), (7.0, -1)])
def test_break_ends_the_inner_loop_only(wanted: float, found: int):
    assert run(find_in_rows, [1, 2, 3, 4, 5, 6], 2, 3, wanted)[0] == found


@tilewright.jit
def return_early(x, out, n):
    if n < 3:
        tl.store(out, -1.0)
        return
    total = 0.0
    for i in range(n):
        value = tl.load(x + i)
        if value == 7:
            tl.store(out, 7.0)
            return
        total += value
    tl.store(out, total)


def test_return_ends_the_kernel():
    assert run(return_early, [1, 2], 2)[0] == -1
    assert run(return_early, [1, 2, 3], 3)[0] == 6
    assert run(return_early, [1, 7, 3], 3)[0] == 7


@tilewright.jit
def sign(value):
    if value > 0:
        return 1.0
    elif value < 0:
        return -1.0
    return 0.0


@tilewright.jit
def signs(x, out, n):
    for i in range(n):
        tl.store(out + i, sign(tl.load(x + i)))


def test_returns_in_branches_give_their_values():
    assert run(signs, [5, -3, 0], 3)[:3] == [1, -1, 0]


@tilewright.jit
def nested_return(a, b):
    if a > 0:
        if b > 0:
            return 1
        a = a + 10
    else:
        if b > 0:
            return 2
    return a


@tilewright.jit
def nested_returns(x, out):
    for i in range(4):
        a = tl.load(x + 2 * i).to(tl.int32)
        b = tl.load(x + 2 * i + 1).to(tl.int32)
        tl.store(out + i, nested_return(a, b).to(tl.float32))


def test_a_return_on_some_paths_of_a_branch_guards_the_rest():
    assert run(nested_returns, [1, 1, 1, -1, -1, 1, -1, -1])[:4] == [1, 11, 2, -1]


@tilewright.jit
def collatz(x, out):
    n = tl.load(x).to(tl.int32)
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(out, steps.to(tl.float32))


def test_while_runs_until_its_test_fails():
    assert run(collatz, [6])[0] == 8
    assert run(collatz, [1])[0] == 0


@tilewright.jit
def endless(x, out):
    i = 0
    while True:
        if tl.load(x + i) == 0:
            break
        i += 1
    tl.store(out, i.to(tl.float32))


def test_an_endless_loop_ends_by_break():
    assert run(endless, [3, 2, 1, 0])[0] == 3


@tilewright.jit
def first_zero(x):
    i = 0
    while True:
        if tl.load(x + i) == 0:
            return i
        i += 1


@tilewright.jit
def endless_with_return(x, out):
    tl.store(out, first_zero(x).to(tl.float32))


def test_an_endless_loop_ends_by_return():
    assert run(endless_with_return, [3, 0])[0] == 1


@tilewright.jit
def guarded_test(x, out, n):
    i = 0
    while tl.load(x + i) > 0:
        i += 1
        if i == n:
            break
    tl.store(out, i.to(tl.float32))


def test_the_test_of_a_loop_that_was_left_reads_nothing():
    # A fourth read would be out of bounds, which the interpreter reports.
    assert run(guarded_test, [1, 1, 1], 3)[0] == 3


@tilewright.jit
def descending(x, out, n):
    position = 0
    for i in range(n - 1, -1, -1):
        tl.store(out + position, tl.load(x + i))
        position += 1  # noqa: SIM113


def test_a_negative_step_counts_down():
    assert run(descending, [1, 2, 3, 4, 5], 5)[:5] == [5, 4, 3, 2, 1]


@tilewright.jit
def unrolled(x, out, n, COUNT: tl.constexpr):
    total = 0.0
    for i in tl.static_range(COUNT):
        if i == 3:
            break
        if i % 2 == 0:
            continue
        if i < n:
            total += tl.load(x + i)
    tl.store(out, total)


def test_static_range_unrolls_with_break_and_continue():
    assert run(unrolled, [1, 2, 4, 8], 4, 10)[0] == 2


@tilewright.jit
def unrolled_with_runtime_break(x, out, COUNT: tl.constexpr):
    total = 0.0
    for i in tl.static_range(COUNT):
        value = tl.load(x + i)
        if value < 0:
            break
        total += value
    tl.store(out, total)


def test_static_range_takes_a_break_of_the_run():
    assert run(unrolled_with_runtime_break, [1, 2, -1], 3)[0] == 3
    assert run(unrolled_with_runtime_break, [1, 2], 2)[0] == 3


@tilewright.jit
def pruned(x, out, FLAG: tl.constexpr):
    if FLAG is not None:
        value = tl.load(x) * FLAG
    else:
        value = tl.load(x).no_such_method()
    tl.store(out, value)


def test_a_constant_condition_prunes_the_other_branch():
    assert run(pruned, [3], 2)[0] == 6


@tilewright.jit
def ternary(x, out):
    value = tl.load(x)
    tl.store(out, value if value > 1 else -value)
    tl.store(out + 1, 5.0 if value > 1 else 6.0)


def test_a_ternary_chooses_at_run_time():
    assert run(ternary, [3])[:2] == [3, 5]
    assert run(ternary, [-3])[:2] == [3, 6]


@tilewright.jit
def short_circuit(x, out, P: tl.constexpr):
    if P is None or P > 3:
        tl.store(out, 1.0)
    if tl.load(x) > 0 and P is None:
        tl.store(out + 1, 1.0)
    if not (tl.load(x) > 0) or tl.load(x) == 5:
        tl.store(out + 2, 1.0)


def test_and_and_or_short_circuit_on_constants():
    assert run(short_circuit, [5], None)[:3] == [1, 1, 1]
    assert run(short_circuit, [2], None)[:3] == [1, 1, 0]


@tilewright.jit
def decided_behind_a_condition(x, out, SKIP: tl.constexpr):
    positive = tl.load(x) > 0
    if not SKIP:
        state = tl.load(x + 1)
    if positive and not SKIP:
        tl.store(out, state)
    if positive and x is not None and not SKIP and tl.load(x) > 1:
        tl.store(out + 1, state)
    tl.store(out + 2, 7.0 if positive or SKIP else state)
    if SKIP:
        tl.static_assert(positive or SKIP)
        tl.static_assert(not (positive and not SKIP))
    while positive and not SKIP:
        tl.store(out + 3, state)
        positive = False


def test_a_constant_decides_behind_a_condition_of_the_run():
    assert run(decided_behind_a_condition, [2, 5], True)[:4] == [0, 0, 7, 0]
    assert run(decided_behind_a_condition, [2, 5], False)[:4] == [5, 5, 7, 5]
    assert run(decided_behind_a_condition, [1, 5], False)[:4] == [5, 0, 7, 5]
    assert run(decided_behind_a_condition, [-1, 5], True)[:4] == [0, 0, 7, 0]
    assert run(decided_behind_a_condition, [-1, 5], False)[:4] == [0, 0, 5, 0]


@tilewright.jit
def counted_before_a_constant(x, out, SKIP: tl.constexpr):
    if tl.atomic_add(out, 1.0) < 9 and not SKIP:
        tl.store(out + 1, 1.0)


def test_what_runs_before_a_constant_that_decides_still_runs():
    assert run(counted_before_a_constant, [0], True)[:2] == [1, 0]
    assert run(counted_before_a_constant, [0], False)[:2] == [1, 1]


@tilewright.jit
def chained(x, out, n):
    for i in range(n):
        value = tl.load(x + i)
        if 1 <= value < 3:
            tl.store(out + i, 1.0)


def test_chained_comparisons_hold_together():
    assert run(chained, [0, 1, 2, 3], 4)[:4] == [0, 1, 1, 0]


@tilewright.jit
def walrus(x, out):
    if (value := tl.load(x)) > 2:
        tl.store(out, value)
    i = 0
    while (item := tl.load(x + i)) > 0:
        tl.store(out + 1 + i, item)
        i += 1


def test_walrus_assigns():
    assert run(walrus, [3, 4, 0])[:3] == [3, 3, 4]


@tilewright.jit
def swap_in_loop(x, out, n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    tl.store(out, a.to(tl.float32))


def test_tuples_of_carried_variables_swap():
    assert run(swap_in_loop, [0], 10)[0] == 55


@tilewright.jit
def temporary_changes_type(x, out, n):
    value = tl.load(x)
    total = value
    for i in range(n):
        value = i * 2
        total += value.to(tl.float32)
    tl.store(out, total)


def test_a_dead_variable_may_change_its_type_in_a_loop():
    assert run(temporary_changes_type, [1], 3)[0] == 7


@tilewright.jit
def constant_stays_constant(x, out, n, N: tl.constexpr):
    width: tl.constexpr = N
    for _ in range(n):
        if N > 100:
            width = 1
        tl.store(out + tl.arange(0, width), tl.load(x + tl.arange(0, width)))


def test_a_constant_that_only_a_pruned_branch_changes_stays_constant():
    assert run(constant_stays_constant, [1, 2, 3, 4], 2, 4)[:4] == [1, 2, 3, 4]


@tilewright.jit
def loop_bounds(x, out, start, stop, STEP: tl.constexpr):
    count = 0
    last = -100
    for i in range(start, stop, STEP):
        count += 1
        last = i
    tl.store(out, count.to(tl.float32))
    tl.store(out + 1, last.to(tl.float32))


@pytest.mark.parametrize("bounds", [(0, 7, 3), (5, 5, 1), (9, 2, 1), (7, -3, -4), (0, 8, -1)])
def test_range_iterates_as_in_python(bounds: tuple[int, int, int]):
    values = list(range(*bounds))
    assert run(loop_bounds, [0], *bounds)[:2] == [len(values), values[-1] if values else -100]


@tilewright.jit
def is_floating(x):
    return (x + tl.zeros((1,), tl.int1)).dtype.is_floating()


@tilewright.jit
def largest(a, b):
    mask = a > b
    if is_floating(a):
        mask |= a != a
    return tl.where(mask, a, b)


@tilewright.jit
def largest_element(x, out):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, 4)), 0, largest))


def test_a_branch_on_a_constant_that_a_function_returned_leaves_no_op():
    assert run(largest_element, [1, 7, 3, 2])[0] == 7
    arrays = np.zeros(4, np.float32), np.zeros(4, np.float32)
    assert "scf.if" not in largest_element.warmup(*arrays).asm["ttir"]
