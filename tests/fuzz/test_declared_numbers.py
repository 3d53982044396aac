"""Numbers for parameters with a declared dtype: one value, whoever runs the kernel.

Numbers are small, large, beyond the range of their dtype, special, and of every class that a call
may pass. What is stored is what NumPy makes of the number in the declared dtype.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from types import FunctionType

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import ArgumentNotSupported, LiteralOutOfRange

INTEGERS = tuple(f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "iu")
FLOATS = {
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
}
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e300, -1e300, 65520.0, 3.4e38, 5e-324)


def make_kernel(declared: str) -> tilewright.JITFunction:
    """A new kernel, which nobody has launched, that stores its parameter."""
    name = f"<declared {declared}>"
    text = f"def stores(out, number: {declared!r}):\n    tl.store(out, number)\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, object] = {"tl": tl, "__name__": __name__}
    exec(compile(text, name, "exec"), names)
    stores = names["stores"]
    assert isinstance(stores, FunctionType)
    return tilewright.jit(stores)


def ways(kernel: tilewright.JITFunction) -> tuple[Callable[..., object], ...]:
    """Every way to launch it; the second on a CPU is a warm one."""
    return (kernel[(1,)], kernel[(1,)], kernel.interpret[(1,)], kernel.simulate[(1,)])


def floats(rng: np.random.Generator) -> list[object]:
    """Numbers of several classes and magnitudes."""
    spread = [float(x) for x in rng.normal(size=4) * 10.0 ** rng.integers(-60, 60, 4)]
    classes = (np.float16, np.float32, np.float64, np.int8, np.uint64, int, bool)
    return [*SPECIAL, *spread, *(kind(number) for kind in classes for number in (1, 100))]


@pytest.mark.parametrize("declared", FLOATS)
def test_a_float_is_what_its_dtype_holds(declared: str, rng: np.random.Generator) -> None:
    kernel = make_kernel(declared)
    for number in floats(rng):
        with np.errstate(over="ignore"):
            expected = np.array(number, np.float64).astype(
                np.float32 if declared == "bf16" else "d"
            )
            expected = expected.astype(FLOATS[declared])
        for launch in ways(kernel):
            out = np.zeros(1, FLOATS[declared])
            launch(out, number)
            assert str(out[0]) == str(expected), (number, launch)


@pytest.mark.parametrize("declared", INTEGERS)
def test_an_integer_is_itself_or_refused(declared: str, rng: np.random.Generator) -> None:
    kernel, dtype = (
        make_kernel(declared),
        np.dtype(("int" if declared[0] == "i" else "uint") + declared[1:]),
    )
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    for number in (0, 1, 16, low, high, int(rng.integers(0, high, dtype=dtype)), dtype.type(7)):
        for launch in ways(kernel):
            out = np.zeros(1, dtype)
            launch(out, number)
            assert out[0] == number
    for launch in ways(kernel):
        with pytest.raises(LiteralOutOfRange):
            launch(out, high + 1)
        for number in (1.5, np.float32(2), math.nan):
            with pytest.raises(ArgumentNotSupported, match="is no integer, as its annotation"):
                launch(out, number)


@pytest.mark.parametrize("declared", ["fp8e4nv", "fp8e5"])
def test_no_parameter_is_a_float_of_8_bits(declared: str) -> None:
    for launch in ways(make_kernel(declared)):
        with pytest.raises(ArgumentNotSupported, match=f"kernels do not take as {declared}"):
            launch(np.zeros(1, np.float32), 1.0)
