"""Where the memory of an array ends, for arrays of packages that nobody here knows."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.frontend.arrays import array_bounds, known_bounds
from tilewright.support.errors import ArgumentNotSupported, OutOfBoundsAccess

CPU = "cpu"


class Bare:
    """An array of which only its start and its dtype are known."""

    device = CPU

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.dtype = array.dtype

    def data_ptr(self) -> int:
        return self._array.ctypes.data


class Named(Bare):
    """An array that its holder gives out as `data`."""

    @property
    def data(self) -> np.ndarray:
        return self._array


class Elsewhere(Bare):
    """A holder whose `data` is another array."""

    data = np.zeros(4, np.float32)


class Nested(Bare):
    """A holder of a holder."""

    @property
    def storage(self) -> Named:
        return Named(self._array)


@tilewright.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def test_what_is_inside_has_the_bounds():
    x = np.arange(20, dtype=np.float32)
    start = x.ctypes.data
    part = x.reshape(4, 5).T[1:]
    assert known_bounds(Named(x)) == known_bounds(Nested(x)) == (start, start + 80)
    assert known_bounds(Named(part)) == known_bounds(part) == (start + 4, start + 80)
    assert known_bounds(Bare(x)) is None and known_bounds(Elsewhere(x)) is None
    assert array_bounds(Bare(x)) == (0, (1 << 63) - 1)


@pytest.mark.parametrize("holder", [Named, Nested])
def test_interpreter_and_simulator_read_what_is_held(holder):
    x, out = np.arange(20, dtype=np.float32), np.zeros(20, np.float32)
    double.interpret[(1,)](holder(x), out, 20, BLOCK=32)
    assert (out == 2 * x).all()
    out[:] = 0
    double.simulate[(1,)](holder(x), out, 20, BLOCK=32)
    assert (out == 2 * x).all()
    for run in (double.interpret, double.simulate):
        with pytest.raises(OutOfBoundsAccess, match="x_ptr"):
            run[(1,)](holder(x[:16]), np.zeros(32, np.float32), 32, BLOCK=32)


@pytest.mark.parametrize("holder", [Bare, Elsewhere])
def test_memory_without_an_end_is_refused_where_its_bytes_are_read(holder):
    x, out = np.arange(20, dtype=np.float32), np.zeros(20, np.float32)
    double[(1,)](holder(x), out, 20, BLOCK=32)
    assert (out == 2 * x).all()
    for run in (double.interpret, double.simulate):
        with pytest.raises(ArgumentNotSupported, match="and not how much there is"):
            run[(1,)](holder(x), out, 20, BLOCK=32)
