"""Objects that are compile-time constants: enums, dataclasses, containers, lambdas, dtypes."""

from __future__ import annotations

import dataclasses
from enum import Enum, IntEnum

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.frontend.constants import Imported, Literal, Record, decode, encode
from tilewright.support.errors import ArgumentNotSupported


class Mode(IntEnum):
    COPY = 1
    DOUBLE = 2


class Kind(Enum):
    FIRST = "first"
    SECOND = "second"


@dataclasses.dataclass(frozen=True)
class Tiling:
    size: int
    mode: Mode = Mode.COPY
    dtype: object = tl.float32

    def doubled(self):
        return self.size * 2


@dataclasses.dataclass
class Mutable:
    size: int


tripled = lambda n: n * 3  # noqa: E731 - what the test is about
HALVED = tl.constexpr(lambda n: n // 2)


def count(kernel: tilewright.JITFunction, *arguments: object) -> int:
    """How many ones the kernel stores, interpreted and compiled."""
    interpreted, compiled = np.zeros(64, np.float32), np.zeros(64, np.float32)
    kernel.interpret[(1,)](interpreted, *arguments)
    kernel[(1,)](compiled, *arguments)
    assert interpreted.tolist() == compiled.tolist()
    return int(compiled.sum())


@tilewright.jit
def by_enum(out, mode: tl.constexpr, kind: tl.constexpr, n):
    tl.static_assert(mode == 1 or mode == Mode.DOUBLE)
    tl.static_assert(mode < Mode.DOUBLE or mode.name == "DOUBLE")
    tl.static_assert(Kind.SECOND.value == "second" and kind != 1)
    if mode == Mode.DOUBLE and kind == Kind.FIRST:
        tl.store(out + tl.arange(0, Mode.DOUBLE * 16), 1.0)
    elif n == Mode.COPY:
        tl.store(out + tl.arange(0, mode), 1.0)


def test_members_of_an_int_enum_are_integers():
    assert count(by_enum, Mode.DOUBLE, Kind.FIRST, 7) == 32
    assert count(by_enum, Mode.DOUBLE, Kind.SECOND, 7) == 0
    assert count(by_enum, Mode.DOUBLE, Kind.SECOND, 1) == 2
    assert count(by_enum, 1, Kind.SECOND, 1) == 1


@tilewright.jit
def by_dataclass(out, tiling: tl.constexpr):
    size: tl.constexpr = tiling.doubled() if tiling.mode == Mode.DOUBLE else tiling.size
    tl.store(out + tl.arange(0, size), tl.full((size,), 1, tiling.dtype))


def test_dataclass_objects_are_constants():
    assert count(by_dataclass, Tiling(8)) == 8
    assert count(by_dataclass, Tiling(8, Mode.DOUBLE, tl.float16)) == 16

    @dataclasses.dataclass(frozen=True)
    class Local:
        size: int
        mode: int
        dtype: object

    assert count(by_dataclass, Local(4, 1, tl.int32)) == 4


@tilewright.jit
def by_contents(out, sizes: tl.constexpr, names: tl.constexpr):
    tl.static_assert("which" in names and "other" not in names and 5 not in sizes)
    tl.store(out + tl.arange(0, sizes[names["which"]]), 1.0)


@tilewright.jit
def by_mutable(out, tiling: tl.constexpr):
    tl.store(out + tl.arange(0, tiling.size), 1.0)


def test_contents_that_change_between_launches_are_seen():
    sizes, names, tiling = [4, 8], {"which": 0}, Mutable(2)
    for which, size in ((0, 4), (1, 8), (0, 16), (1, 8), (0, 4)):
        sizes[which], names["which"], tiling.size = size, which, size
        for _ in range(2):
            assert count(by_contents, sizes, names) == size
            assert count(by_mutable, tiling) == size


@tilewright.jit
def by_lambda(out, function: tl.constexpr):
    tl.store(out + tl.arange(0, function(8)), 1.0)
    tl.static_assert(tripled(2) == 6 and HALVED(8) == 4)


def test_lambdas_run_on_constants():
    assert count(by_lambda, lambda n: n * 4) == 32
    two = (lambda n: n * 2, lambda n: n * 4)
    with pytest.raises(ArgumentNotSupported, match="cannot be a compile-time constant"):
        count(by_lambda, two[0])


SIXTEEN, HALF = tl.constexpr(np.int64(16)), tl.constexpr(np.float32(0.5))
FIRST = np.uint8(200)


@tilewright.jit
def by_numpy(out, size: tl.constexpr, first: tl.constexpr = FIRST):
    tl.static_assert(SIXTEEN * HALF == 8 and first + first == 400)
    tl.store(out + tl.arange(0, size), 1.0)


def test_scalars_of_numpy_are_python_numbers_among_constants():
    """Whatever their width: 200 + 200 of uint8 is 400, as a literal would give."""
    for size in (np.int32(4), 4, np.int64(8), np.uint8(16), np.int8(4)):
        assert count(by_numpy, size) == size
    with pytest.raises(ArgumentNotSupported, match="cannot be a compile-time constant"):
        count(by_numpy, np.complex64(4))


@tilewright.jit
def by_foreign_object(out, dtype: tl.constexpr):
    if dtype == ml_dtypes.bfloat16:
        tl.store(out + tl.arange(0, 8), 1.0)


def test_objects_that_can_be_imported_are_constants():
    assert count(by_foreign_object, ml_dtypes.bfloat16) == 8
    assert count(by_foreign_object, np.float32) == 0


@tilewright.jit
def takes_a_flag(out, flag, number):
    if flag:
        tl.store(out + tl.arange(0, 4), number)


def test_numpy_scalars_are_scalars():
    assert count(takes_a_flag, np.bool_(True), np.int64(1)) == 4
    assert count(takes_a_flag, np.bool_(False), np.float32(1)) == 0


def test_constants_survive_their_text_form():
    record = Record(Imported("m", "Cls"), ("a", "b"), (1, Literal("{'x': 2}")))
    assert decode(encode(record)) == record
