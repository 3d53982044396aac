"""Launches that are refused say where they were written, and which argument is wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.errors.wrong import relative
from tests.plugins.goldens import Golden
from tilewright import JITFunction, TilewrightError

X = np.zeros(16, np.float32)
FROZEN = X.copy()
FROZEN.flags.writeable = False


@tilewright.jit
def fill(x, value, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), value)


@tilewright.jit
def apply(x, function: tl.constexpr):
    tl.store(x, function(1.0))


@tilewright.jit
def wrong_inside(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.nothing)


LAUNCHES: dict[str, Callable[[], object]] = {
    "no_array": lambda: fill[(1,)](object(), 1, 16),
    "missing_argument": lambda: fill[(1,)](X, 1),
    "too_many_arguments": lambda: fill[(1,)](X, 1, 16, 5),
    "unknown_keyword": lambda: fill[(1,)](X, 1, 16, foo=3),
    "array_for_a_constant": lambda: fill[(1,)](X, 1, np.zeros(3)),
    "partial_for_a_constant": lambda: apply[(1,)](X, functools.partial(max, 1)),
    "read_only_array": lambda: fill[(1,)](FROZEN, 1, 16),
    "four_axes": lambda: fill[(1, 2, 3, 4)](X, 1, 16),
    "axis_of_text": lambda: fill[("a",)](X, 1, 16),
    "negative_axis": lambda: fill[lambda meta: (-1,)](X, 1, BLOCK=16),
    "over_several_lines": lambda: fill[(1,)](
        X,
        1,
    ),
    "unknown_option_value": lambda: fill[(1,)](X, 1, 16, num_warps=3),
    "warmup": lambda: fill.warmup(X, 1, grid=(1,)),
    "behind_other_text": lambda: print("ü€", fill[(1,)](X)),
}


def message(launch: Callable[[], object], kernel: JITFunction = fill) -> str:
    with pytest.raises(TilewrightError) as caught:
        launch()
    file, first = Path(__file__), launch.__code__.co_firstlineno
    last = max(line for *_, line in launch.__code__.co_lines() if line is not None)
    return relative(str(caught.value), file, range(first, last + 1))


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_refused_launch_says_where_it_stands(name: str, golden: Golden) -> None:
    golden(f"golden/launch_{name}", message(LAUNCHES[name]))


@pytest.mark.parametrize("name", ["no_array", "too_many_arguments", "four_axes"])
def test_other_ways_of_running_say_the_same(name: str) -> None:
    written = {
        "no_array": lambda ways: ways[(1,)](object(), 1, 16),
        "too_many_arguments": lambda ways: ways[(1,)](X, 1, 16, 5),
        "four_axes": lambda ways: ways[(1, 2, 3, 4)](X, 1, 16),
    }[name]
    texts: set[str] = set()
    for way in (fill, fill.interpret, fill.simulate):
        with pytest.raises(TilewrightError) as caught:
            written(way)
        launch = caught.value.launch
        assert launch is not None and launch.line == written.__code__.co_firstlineno
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_a_warm_kernel_says_it_too() -> None:
    fill[(1,)](X, 1, 16)
    assert "+0" in message(LAUNCHES["missing_argument"])


def test_an_error_in_the_kernel_has_the_place_in_the_kernel() -> None:
    with pytest.raises(TilewrightError) as caught:
        wrong_inside[(1,)](X, 16)
    assert caught.value.launch is None and "launched" not in str(caught.value)
