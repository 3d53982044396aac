"""What `debug`, `sanitize_overflow` and `checked` turn on, and what the environment changes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tests.api.alias  # noqa: F401 - puts `triton` on the path
import tilewright
import tilewright.language as tl
from tilewright.support import environment
from tilewright.support.errors import AssertionFailed, DivisionByZero, UndefinedValue

import triton  # isort: skip


def combine(x, y, out, n, OP: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at, mask=at < n), tl.load(y + at, mask=at < n, other=0)
    if OP == "+":
        c = a + b
    elif OP == "-":
        c = a - b
    elif OP == "*":
        c = a * b
    elif OP == "//":
        c = a // b
    else:
        c = a % b
    tl.store(out + at, c, mask=at < n)


def claim(x, OK: tl.constexpr):
    tl.device_assert(tl.load(x) > 0, "positive")


kernel = tilewright.jit(combine)
N = 32
SIGNED = (np.int8, np.int16, np.int32)
UNSIGNED = (np.uint8, np.uint16, np.uint32)


def run(function, operator: str, dtype, a: int, b: int, n: int = N, **chosen: object):
    x, y = np.full(N, 1, dtype), np.full(N, 1, dtype)
    x[n // 2], y[n // 2] = a, b
    out = np.zeros(N, dtype)
    function[(1,)](x, y, out, n, OP=operator, N=N, **chosen)
    return out


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_overflow_is_reported_with_debug_or_by_its_own_option(operator, dtype) -> None:
    info = np.iinfo(dtype)
    a, b = (info.min, 1) if operator == "-" else (info.max, 2)
    run(kernel, operator, dtype, a, b)
    run(kernel, operator, dtype, a, b, debug=True, sanitize_overflow=False)
    for chosen in ({"debug": True}, {"sanitize_overflow": True}):
        run(kernel, operator, dtype, info.max // 2, 1, **chosen)
        with pytest.raises(AssertionFailed, match="overflow"):
            run(kernel, operator, dtype, a, b, **chosen)
        with pytest.raises(AssertionFailed, match="overflow"):
            run(kernel.interpret, operator, dtype, a, b, **chosen)
    run(kernel.interpret, operator, dtype, a, b)


@pytest.mark.parametrize("operator", ["//", "%"])
@pytest.mark.parametrize("dtype", (*SIGNED, *UNSIGNED, np.int64, np.uint64))
def test_division_by_zero_is_reported_in_checked_mode(operator, dtype) -> None:
    run(kernel, operator, dtype, 5, 0)
    run(kernel, operator, dtype, 7, 3, checked=True)
    for n in (N, 7):  # with lanes that nobody divides, whose divisor is 0
        run(kernel, operator, dtype, 7, 3, n=n, checked=True)
        with pytest.raises(DivisionByZero, match="division by zero") as raised:
            run(kernel, operator, dtype, 5, 0, n=n, checked=True)
        assert raised.value.span is not None and raised.value.span.file == __file__
        with pytest.raises(DivisionByZero) as named:
            run(kernel.interpret, operator, dtype, 5, 0, n=n)
        assert named.value.span.line == raised.value.span.line


@pytest.mark.parametrize("operator", ["//", "%"])
@pytest.mark.parametrize("dtype", (*SIGNED, np.int64))
def test_the_least_integer_is_not_divided_by_minus_one_in_checked_mode(operator, dtype) -> None:
    least = np.iinfo(dtype).min
    run(kernel, operator, dtype, least + 1, -1, checked=True)
    run(kernel, operator, dtype, least, 1, checked=True)
    with pytest.raises(DivisionByZero):
        run(kernel, operator, dtype, least, -1, checked=True)


@tilewright.jit
def unused_quotient(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    quotient = tl.load(x + at) // tl.load(x + at)
    tl.store(out + at, tl.load(x + at, mask=at < 1), mask=at < 2)
    tl.store(out + at, quotient, mask=at < 0)


def test_the_interpreter_keeps_other_causes_apart() -> None:
    x, out = np.zeros(4, np.int32), np.zeros(4, np.int32)
    with pytest.raises(UndefinedValue):
        unused_quotient.interpret[(1,)](x, out, N=4)


def test_the_environment_wins_over_the_decorator_and_the_launch(monkeypatch) -> None:
    zero = np.zeros(1, np.int32)
    makers = (tilewright.jit, triton.jit)
    for jit in makers:
        jit(debug=False)(claim)[(1,)](zero, OK=True)
        with pytest.raises(AssertionFailed, match="positive"):
            jit(debug=True)(claim)[(1,)](zero, OK=True)
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    for jit in makers:
        for function in (jit(claim), jit(debug=False)(claim)):
            with pytest.raises(AssertionFailed, match="positive"):
                function[(1,)](zero, OK=True)
            with pytest.raises(AssertionFailed, match="positive"):
                function[(1,)](zero, OK=True, debug=False)


def test_tritons_variable_wins_over_the_decorator(monkeypatch) -> None:
    monkeypatch.setenv("TRITON_DEBUG", "1")
    with pytest.raises(AssertionFailed, match="positive"):
        triton.jit(debug=False)(claim)[(1,)](np.zeros(1, np.int32), OK=True)


def test_a_fault_of_a_kernel_is_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="positive"):
        tilewright.jit(claim)[(1,)](np.zeros(1, np.int32), OK=True, debug=True)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("TILEWRIGHT_CHEKED", "did you mean TILEWRIGHT_CHECKED?"),
        ("TILEWRIGHT_CACHEDIR", "did you mean TILEWRIGHT_CACHE_DIR?"),
        ("TILEWRIGHT_XYZZY", "it changes nothing"),
    ],
)
def test_a_misspelt_variable_is_warned_of_once(name, remedy, monkeypatch) -> None:
    monkeypatch.setenv(name, "1")
    environment.warn_of_unknown_variables.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tilewright.jit(claim)
        tilewright.jit(claim)
    assert [str(w.message) for w in caught] == [
        f"there is no environment variable {name}: {remedy}"
    ]


@triton.jit
def adds_a_name(x):
    tl.store(x, tl.load(x) + unknown_name)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def test_a_compilation_error_has_what_programs_for_triton_read() -> None:
    with pytest.raises(triton.CompilationError) as raised:
        adds_a_name[(1,)](np.zeros(1, np.int32))
    error = raised.value
    assert "unknown_name" in error.error_message and "\n" not in error.error_message
    assert "unknown_name" in error.src
    assert error.node.lineno == error.span.line
    assert error.src[error.node.col_offset :].startswith("unknown_name")


@tilewright.jit
def fold(x, total, running, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    tl.store(total, tl.sum(values))
    tl.store(running + tl.arange(0, N), tl.cumsum(values))


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
@pytest.mark.parametrize("form", ["compiled", "interpreted"])
def test_sums_wrap_under_debug_as_they_do_without(form: str, dtype) -> None:
    """A part of a sum may leave the type where the sum does not, so no part is asserted."""
    x = np.full(N, np.iinfo(dtype).max, dtype)
    wide = np.uint32 if dtype in UNSIGNED else np.int32
    total, running = np.zeros(1, wide), np.zeros(N, wide)
    launched = fold if form == "compiled" else fold.interpret
    launched[(1,)](x, total, running, N=N, debug=True)
    expected = np.cumsum(x.astype(wide), dtype=wide)
    assert total[0] == expected[-1]
    np.testing.assert_array_equal(running, expected)


@tilewright.jit
def count_steps(x, start, end, step):
    count = 0
    for _ in range(start, end, step):
        count += 1
    tl.store(x, count)


@pytest.mark.parametrize("step", [0, -3])
@pytest.mark.parametrize("form", ["compiled", "interpreted", "simulated"])
def test_a_step_of_the_run_is_positive_under_debug(form: str, step: int) -> None:
    """By 0 the loop would not end: it does not begin, and the launch says why."""
    launched = {
        "compiled": count_steps,
        "interpreted": count_steps.interpret,
        "simulated": count_steps.simulate,
    }[form]
    x = np.full(1, -1, np.int32)
    launched[(1,)](x, 2, 17, 4, debug=True)
    assert x[0] == 4
    with pytest.raises(AssertionFailed, match="a step that only the run knows must be positive"):
        launched[(1,)](x, 2, 17, step, debug=True)
