"""A case of the corpus: a kernel, a launch over many programs, and what memory holds after it.

References are plain NumPy, in float64 where the kernel rounds more than once. They change a
copy of the inputs in place, so an array that a reference leaves alone must be left alone by the
kernel too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from tilewright.jit import JITFunction
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.testing import assert_close

Array = np.ndarray
Values = dict[str, object]
Reference = Callable[[SimpleNamespace], object]

BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)
INTEGERS = tuple(np.dtype(f"{kind}{width}") for kind in "iu" for width in (1, 2, 4, 8))
FLOATS = (np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class Close:
    """Floating-point results may be off by `atol + rtol * |expected|`; all else is exact."""

    rtol: float
    atol: float = 0.0


EXACT = Close(0.0, 0.0)


@dataclass(frozen=True)
class Addresses:
    """An int64 argument array that holds the addresses of other arguments' elements."""

    of: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Case:
    """One kernel over one grid with one set of inputs.

    `is_slow` keeps a case out of the default run.
    """

    name: str
    kernel: JITFunction
    grid: tuple[int, ...]
    inputs: Callable[[np.random.Generator], Values]
    reference: Reference
    tolerance: Close = EXACT
    is_slow: bool = False
    options: Mapping[str, object] = field(default_factory=dict)

    def values(self) -> Values:
        """Fresh arguments, the same every time."""
        return self.inputs(np.random.default_rng(zlib.crc32(self.name.encode())))

    def expected(self) -> dict[str, Array]:
        """What the array arguments hold after the launch."""
        values = self.values()
        with np.errstate(all="ignore"):
            self.reference(SimpleNamespace(**values))
        return arrays_of(values)


def arrays_of(values: Values) -> dict[str, Array]:
    """The arrays among the arguments by name, those of host descriptors too."""
    arrays: dict[str, Array] = {}
    for name, value in values.items():
        array = value.base if isinstance(value, TensorDescriptor) else value
        if isinstance(array, np.ndarray):
            arrays[name] = array
    return arrays


def check(
    case: Case, got: Mapping[str, Array], expected: Mapping[str, Array], title: str = ""
) -> None:
    """Every array agrees with what is expected within the case's tolerance."""
    for name, right in expected.items():
        left = got[name]
        label = f"{case.name}: {title}: array `{name}`"
        assert left.dtype == right.dtype, label
        if is_float(right.dtype):
            tolerance = case.tolerance
            assert_close(left, right, tolerance.atol, tolerance.rtol, label)
        else:
            np.testing.assert_array_equal(left, right, label)


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype is floating point, NumPy's or not."""
    return dtype.kind == "f" or dtype in (BF16, E4M3, E5M2)


def normal(
    rng: np.random.Generator, shape: int | tuple[int, ...], dtype: DTypeLike = np.float32
) -> Array:
    """Standard normal numbers."""
    return rng.standard_normal(shape).astype(np.dtype(dtype))


def whole(
    rng: np.random.Generator, shape: int | tuple[int, ...], dtype: DTypeLike = np.int32,
    low: int | None = None, high: int | None = None,
) -> Array:  # fmt: skip
    """Integers of the dtype's whole range, or of [low, high)."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    limits = np.iinfo(str(kind))
    first = limits.min if low is None else low
    last = limits.max if high is None else high - 1
    return rng.integers(first, last, shape, dtype=kind, endpoint=True)


def data(rng: np.random.Generator, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
    """Numbers that suit the dtype: normal for floats, the whole range for integers."""
    kind = np.dtype(dtype)
    return normal(rng, shape, kind) if is_float(kind) else whole(rng, shape, kind)


def blank(shape: int | tuple[int, ...], dtype: DTypeLike = np.float32) -> Array:
    """An output: filled with a value that no case computes by chance everywhere."""
    return (
        np.full(shape, 77, np.dtype(dtype))
        if np.dtype(dtype) != np.bool_
        else np.zeros(shape, np.bool_)
    )


def wide(array: Array) -> Array:
    """As float64."""
    return array.astype(np.float64)


def short(dtype: DTypeLike) -> str:
    """A dtype's short name for case names."""
    return np.dtype(dtype).name
