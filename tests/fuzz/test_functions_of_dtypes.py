"""Every function of the language on tiles of every dtype: it compiles or says why not."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import InternalError, TilewrightError

DTYPES = {
    "int1": np.bool_,
    "int8": np.int8,
    "int32": np.int32,
    "int64": np.int64,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "float8e4nv": np.uint8,
    "float8e5": np.uint8,
    "bfloat16": np.uint16,
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
}
FUNCTIONS = tuple(
    name
    for name in sorted(tl.__all__)
    if callable(getattr(tl, name)) and not isinstance(getattr(tl, name), type)
)
# Fewer would say that the kernels below are wrong rather than the dtype.
LEAST_COMPILED = 20


@tilewright.jit
def keep(out, result):
    if isinstance(result, tl.tuple):
        for i in tl.static_range(len(result)):
            keep(out, result[i])
    elif isinstance(result, tl.tensor) and not result.dtype.is_ptr():
        tl.store(out + tl.zeros(result.shape, tl.int32), result.to(tl.float32))


@tilewright.jit
def one_tile(x, out, F: tl.constexpr, FORMAT: tl.constexpr):
    at = tl.arange(0, 8)
    keep(out, F(tl.load(x + at).to(FORMAT, bitcast=True)))


@tilewright.jit
def one_tile_and_an_axis(x, out, F: tl.constexpr, FORMAT: tl.constexpr):
    at = tl.arange(0, 8)
    keep(out, F(tl.load(x + at).to(FORMAT, bitcast=True), 0))


@tilewright.jit
def pointers_and_a_tile(x, out, F: tl.constexpr, FORMAT: tl.constexpr):
    at = tl.arange(0, 8)
    keep(out, F(x + at, tl.load(x + at).to(FORMAT, bitcast=True)))


FORMS = (one_tile, one_tile_and_an_axis, pointers_and_a_tile)


@pytest.mark.slow
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("name", DTYPES)
def test_a_function_compiles_or_says_why_it_does_not(name: str, debug: bool) -> None:
    x, out = np.zeros(64, DTYPES[name]), np.zeros(8, np.float32)
    compiled: list[str] = []
    defects: list[str] = []
    for function in FUNCTIONS:
        for form in FORMS:
            arguments = {"F": getattr(tl, function), "FORMAT": getattr(tl, name)}
            try:
                form.warmup(x, out, **arguments, debug=debug)
                compiled.append(function)
            except InternalError as error:
                defects.append(f"{form.fn.__name__} of {function}: {error.summary}")
            except TilewrightError as error:
                assert error.summary
    assert not defects, "\n".join(defects)
    assert len(set(compiled)) >= LEAST_COMPILED, compiled
