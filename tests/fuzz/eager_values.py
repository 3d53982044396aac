"""Tiles and pointers as NumPy arrays: what the pages on the language say, without a compiler.

A kernel's own text runs as Python over these, so that a fault which every other way to run it
shares (all of them read what the frontend made of the text) shows all the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tests.fuzz.program import DTYPES

NAMES = {dtype: name for name, dtype in DTYPES.items()}
_FLOATS = ("float64", "float32", "float16", "bfloat16", "float8e4nv", "float8e5")
_BITS = {name: 1 if name == "int1" else dtype.itemsize * 8 for name, dtype in DTYPES.items()}
_KINDS = {bool: 0, int: 1, float: 2}
_MOST = {"float8e4nv": 448.0, "float8e5": 57344.0}


def is_float(name: str) -> bool:
    """Whether a dtype is of floats."""
    return name in _FLOATS


def is_unsigned(name: str) -> bool:
    """Whether a dtype is of integers without a sign, int1 among them."""
    return name.startswith("u") or name == "int1"


def promote(left: str, right: str, is_division: bool = False) -> str:
    """The dtype in which two tiles meet: the table of the page on the language, from the top."""
    floats = [name for name in (left, right) if is_float(name)]
    if "float64" in floats:
        return "float64"
    if floats and (is_division or "float32" in floats):
        return "float32"
    if "float16" in floats:
        return "float16"
    if "bfloat16" in floats:
        return "bfloat16" if left == right else "float32"
    if floats:
        assert len(floats) == 2, (left, right)
        return left if left == right else "float16"
    if is_unsigned(left) == is_unsigned(right):
        return left if _BITS[left] >= _BITS[right] else right
    unsigned, signed = (left, right) if is_unsigned(left) else (right, left)
    return unsigned if _BITS[unsigned] >= _BITS[signed] else signed


def number_dtype(number: bool | int | float, beside: str) -> str:
    """The dtype that a Python number takes beside a tile."""
    kind = 2 if is_float(beside) else int(beside != "int1")
    if _KINDS[type(number)] <= kind:
        return beside
    if isinstance(number, float):
        return "float32"
    for name in ("int32", "uint32", "int64"):
        if np.iinfo(name).min <= number <= np.iinfo(name).max:
            return name
    return "uint64"


def converted(values: np.ndarray, source: str, target: str) -> np.ndarray:
    """Values of one dtype in another."""
    if target in _MOST:
        values = np.clip(values.astype(np.float32), -_MOST[target], _MOST[target])
    if target == "int1":
        return values != 0
    if is_float(source) and not is_float(target):
        # From float64, which holds all values of narrow floats; out of range is undefined.
        return values.astype(np.float64).astype(np.int64).astype(DTYPES[target])
    return values.astype(DTYPES[target])


def _truncated(values: np.ndarray, divisors: np.ndarray) -> np.ndarray:
    """The quotient rounded to zero, which wraps."""
    quotients = values // divisors
    is_inexact = quotients * divisors != values
    return quotients + (is_inexact & ((values < 0) != (divisors < 0))).astype(values.dtype)


@dataclass(frozen=True, eq=False)
class Tile:
    """Values with a dtype's name; a scalar has the shape ()."""

    values: np.ndarray
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.values.shape

    @property
    def T(self) -> Tile:
        """The transposed tile."""
        return Tile(self.values.T, self.name)

    def to(self, dtype: str, bitcast: bool = False) -> Tile:
        """The values, or their bits, in another dtype."""
        if bitcast:
            return Tile(np.array(self.values, order="C").view(DTYPES[dtype]), dtype)
        return Tile(converted(self.values, self.name, dtype), dtype)

    def meet(self, other: object, is_division: bool = False) -> tuple[Tile, Tile, str]:
        """Both operands in the dtype in which they meet, and its name."""
        if not isinstance(other, Tile):
            assert isinstance(other, bool | int | float), other
            name = number_dtype(other, self.name)
            other = Tile(np.asarray(other).astype(DTYPES[name]), name)
        name = promote(self.name, other.name, is_division)
        return self.to(name), other.to(name), name

    def combine(
        self, other: object, function: Callable[[np.ndarray, np.ndarray], np.ndarray],
        is_division: bool = False, is_swapped: bool = False,
    ) -> Tile:  # fmt: skip
        """What NumPy's function makes of both; narrow floats compute in float32."""
        left, right, name = self.meet(other, is_division)
        if is_swapped:
            left, right = right, left
        if is_float(name) and _BITS[name] < 32:
            narrow = function(left.values.astype(np.float32), right.values.astype(np.float32))
            return Tile(narrow, "float32").to(name)
        return Tile(np.asarray(function(left.values, right.values), DTYPES[name]), name)

    def _compare(
        self, other: object, function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> Tile:
        left, right, _ = self.meet(other)
        return Tile(np.asarray(function(left.values, right.values)), "int1")

    def __add__(self, other: object) -> Tile:
        if isinstance(other, Pointer):
            return other + self  # type: ignore[return-value]  # a pointer, as in the language
        return self.combine(other, np.add)

    __radd__ = __add__

    def __sub__(self, other: object) -> Tile:
        return self.combine(other, np.subtract)

    def __rsub__(self, other: object) -> Tile:
        return self.combine(other, np.subtract, is_swapped=True)

    def __mul__(self, other: object) -> Tile:
        return self.combine(other, np.multiply)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Tile:
        left, right, name = self.meet(other, is_division=True)
        if not is_float(name):
            left, right = left.to("float32"), right.to("float32")
        return left.combine(right, np.divide, is_division=True)

    def __floordiv__(self, other: object) -> Tile:
        return self.combine(other, _truncated)

    def __mod__(self, other: object) -> Tile:
        return self.combine(other, np.fmod, is_division=True)

    def __and__(self, other: object) -> Tile:
        return self.combine(other, np.bitwise_and)

    __rand__ = __and__

    def __or__(self, other: object) -> Tile:
        return self.combine(other, np.bitwise_or)

    def __xor__(self, other: object) -> Tile:
        return self.combine(other, np.bitwise_xor)

    def __lshift__(self, other: object) -> Tile:
        return self.combine(other, np.left_shift)

    def __rshift__(self, other: object) -> Tile:
        return self.combine(other, np.right_shift)

    def __invert__(self) -> Tile:
        return Tile(np.invert(self.values), self.name)

    def __neg__(self) -> Tile:
        return Tile(np.negative(self.values), self.name)

    def __lt__(self, other: object) -> Tile:
        return self._compare(other, operator.lt)

    def __le__(self, other: object) -> Tile:
        return self._compare(other, operator.le)

    def __gt__(self, other: object) -> Tile:
        return self._compare(other, operator.gt)

    def __ge__(self, other: object) -> Tile:
        return self._compare(other, operator.ge)

    def __eq__(self, other: object) -> Tile:  # type: ignore[override]  # a tile of bools
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Tile:  # type: ignore[override]  # a tile of bools
        return self._compare(other, operator.ne)

    def __getitem__(self, index: object) -> Tile:
        return Tile(self.values[index], self.name)  # type: ignore[index]  # None and `:` only

    def __bool__(self) -> bool:
        assert self.shape == (), "a condition is a scalar"
        return bool(self.values)

    def __index__(self) -> int:
        assert self.shape == (), "a bound is a scalar"
        return int(self.values)


@dataclass(frozen=True)
class Pointer:
    """Addresses: an array, and which of its elements."""

    array: np.ndarray
    at: np.ndarray

    def __add__(self, offset: object) -> Pointer:
        offset = offset.values if isinstance(offset, Tile) else offset
        return Pointer(self.array, self.at + np.asarray(offset).astype(np.int64))

    __radd__ = __add__

    def __getitem__(self, index: object) -> Pointer:
        return Pointer(self.array, self.at[index])  # type: ignore[index]  # None and `:` only


def scalar(number: int, name: str = "int32") -> Tile:
    """A number of the run."""
    return Tile(np.asarray(number).astype(DTYPES[name]), name)


def counted(*bounds: Tile | int, **_: object) -> Iterator[Tile]:
    """`range` of the run: Python's, with counters of 64 bits where a bound needs them."""
    names = {bound.name for bound in bounds if isinstance(bound, Tile)}
    is_wide = not names.isdisjoint(("int64", "uint64", "uint32"))
    for number in range(*(int(bound) for bound in bounds)):
        yield scalar(number, "int64" if is_wide else "int32")
