"""Atomics: results in memory and returned, the dtypes they take, their orders."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.emission import Emission
from tests.ops.harness import interpret
from tilewright.language.core import (
    bfloat16,
    dtype,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tilewright.ops.atomics.ir import RMW_KINDS, AtomicRmwOp
from tilewright.support.errors import (
    DtypeNotAllowed,
    InvalidOption,
    NotAPointer,
    ShapeMismatch,
    StoreToConst,
)

N = 16
WORDS = (int32, uint32, int64, uint64)
FLOATS = (float32, float64)
NARROW = (int8, uint8, int16, uint16)


@tilewright.jit
def rmw_kernel(x, values, mask, old, KIND: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    value = tl.load(values + at)
    chosen = tl.load(mask + at) != 0
    if KIND == "add":
        before = tl.atomic_add(x + at, value, mask=chosen)
    elif KIND == "max":
        before = tl.atomic_max(x + at, value, mask=chosen)
    elif KIND == "min":
        before = tl.atomic_min(x + at, value, mask=chosen)
    elif KIND == "and":
        before = tl.atomic_and(x + at, value, mask=chosen)
    elif KIND == "or":
        before = tl.atomic_or(x + at, value, mask=chosen)
    elif KIND == "xor":
        before = tl.atomic_xor(x + at, value, mask=chosen)
    else:
        before = tl.atomic_xchg(x + at, value, mask=chosen)
    tl.store(old + at, before, mask=chosen)


REFERENCE = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda a, b: b,
}
CASES = [
    (kind, name)
    for kind in REFERENCE
    for name in ("int32", "uint32", "int64", "uint64", "float32", "float64")
    if kind in ("add", "max", "min", "xchg") or "int" in name
]


def numbers(rng: np.random.Generator, name: str) -> np.ndarray:
    """Values of both signs, the extreme ones among them."""
    kind = np.dtype(name)
    if kind.kind == "f":
        values = rng.standard_normal(N).astype(kind)
        values[:4] = [0.0, -0.0, np.inf, -np.inf]
        return rng.permutation(values)
    info = np.iinfo(kind)
    values = rng.integers(info.min, info.max, N, kind, endpoint=True)
    values[:2] = info.min, info.max
    return rng.permutation(values)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_memory_and_old_values_agree_with_numpy(
    kind: str, name: str, rng: np.random.Generator
) -> None:
    x, values = numbers(rng, name), numbers(rng, name)
    mask = (rng.random(N) < 0.7).astype(np.int32)
    start, old = x.copy(), np.zeros(N, name)
    with np.errstate(all="ignore"):
        interpret(rmw_kernel, (1,), x, values, mask, old, KIND=kind, SIZE=N)
        changed = REFERENCE[kind](start, values)
    chosen = mask.astype(bool)
    assert np.array_equal(x, np.where(chosen, changed, start), equal_nan=True)
    assert np.array_equal(old[chosen], start[chosen], equal_nan=True)
    assert not old[~chosen].any()


@tilewright.jit
def count_kernel(x):
    tl.atomic_add(x, 1.0)


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_every_program_of_a_grid_counts_once(name: str) -> None:
    x = np.zeros(1, name)
    interpret(count_kernel, (40,), x, settings={"seed": 1})
    assert x[0] == 40


@tilewright.jit
def cas_kernel(x, old, EXPECTED: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(old + at, tl.atomic_cas(x + at, EXPECTED, 9))


@pytest.mark.parametrize(
    "name", ["int16", "uint16", "int32", "uint64", "float16", "float32", "float64"]
)
def test_compare_and_swap_replaces_equal_elements_alone(name: str) -> None:
    x = np.array([1, 2, 3, 2], name)
    old = np.zeros(4, name)
    interpret(cas_kernel, (1,), x, old, EXPECTED=2, SIZE=4)
    assert x.tolist() == [1, 9, 3, 9]
    assert old.tolist() == [1, 2, 3, 2]


@tilewright.jit
def copy_kernel(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.atomic_store(out + at, tl.atomic_load(x + at), mask=at < 3)


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int32", "float16", "float32", "int64"])
def test_atomic_load_and_store_copy(name: str) -> None:
    x, out = np.array([1, 0, 1, 1]).astype(name), np.zeros(4, name)
    interpret(copy_kernel, (1,), x, out, SIZE=4)
    assert out.tolist() == [*x.tolist()[:3], 0]


@tilewright.jit
def hand_over_kernel(flag, data, out):
    if tl.program_id(0) == 0:
        tl.store(data, 42)
        tl.atomic_store(flag, 1)
    else:
        ready = tl.atomic_poll(flag, 1)
        tl.store(out, tl.load(data))
        tl.store(out + 1, ready.to(tl.int32))


@pytest.mark.parametrize("seed", range(4))
def test_a_poll_waits_and_acquires(seed: int) -> None:
    flag, data, out = (np.zeros(n, np.int32) for n in (1, 1, 2))
    interpret(hand_over_kernel, (2,), flag, data, out, settings={"seed": seed})
    assert out.tolist() == [42, 1]


@pytest.mark.parametrize("name", ["and", "or", "xor"])
@pytest.mark.parametrize("element", [*FLOATS, float16, *NARROW, int1])
def test_bitwise_atomics_take_wide_integers_alone(name: str, element: dtype) -> None:
    emission = Emission()
    with pytest.raises(DtypeNotAllowed, match="points to"):
        emission.call(f"atomic_{name}", emission.pointer(element, 4), 1)


@pytest.mark.parametrize("name", ["max", "min", "xchg"])
@pytest.mark.parametrize("element", [float16, bfloat16, float8e5, *NARROW])
def test_extrema_and_exchange_take_words_alone(name: str, element: dtype) -> None:
    emission = Emission()
    with pytest.raises(DtypeNotAllowed, match="points to"):
        emission.call(f"atomic_{name}", emission.pointer(element, 4), 1)


@pytest.mark.parametrize("element", [*WORDS, *FLOATS, float16, bfloat16])
def test_add_takes_half_floats_too(element: dtype) -> None:
    emission = Emission()
    result = emission.call("atomic_add", emission.pointer(element, 4), 1)
    assert result.dtype == element  # type: ignore[union-attr]
    (op,) = [op for op in emission.ops() if isinstance(op, AtomicRmwOp)]
    assert op.kind_name() == ("fadd" if element.is_floating() else "add")


@pytest.mark.parametrize("element", [int8, int1, float8e5])
def test_compare_and_swap_needs_16_bits(element: dtype) -> None:
    emission = Emission()
    with pytest.raises(DtypeNotAllowed):
        emission.call("atomic_cas", emission.pointer(element), 0, 1)


@pytest.mark.parametrize(("element", "kind"), [(int32, "max"), (uint64, "umax")])
def test_signedness_chooses_the_maximum(element: dtype, kind: str) -> None:
    emission = Emission()
    emission.call("atomic_max", emission.pointer(element), 1)
    (op,) = [op for op in emission.ops() if isinstance(op, AtomicRmwOp)]
    assert op.kind_name() == kind


def test_the_maximum_of_floats_is_two_integer_extrema() -> None:
    emission = Emission()
    emission.call("atomic_max", emission.pointer(float32, 8), emission.value(float32, 8))
    kinds = [op.kind.value.data for op in emission.ops() if isinstance(op, AtomicRmwOp)]
    assert [RMW_KINDS[k] for k in kinds] == ["max", "umin"]


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_the_order_reaches_the_op(sem: str) -> None:
    emission = Emission()
    emission.call("atomic_add", emission.pointer(int32), 1, sem=sem, scope="sys")
    (op,) = [op for op in emission.ops() if isinstance(op, AtomicRmwOp)]
    assert op.order_name() == sem


@pytest.mark.parametrize(
    ("name", "sem"),
    [("atomic_add", "weak"), ("atomic_load", "release"), ("atomic_store", "acquire")],
)
def test_an_order_that_the_op_lacks_is_refused(name: str, sem: str) -> None:
    emission = Emission()
    values = () if name == "atomic_load" else (1,)
    with pytest.raises(InvalidOption, match="`sem`"):
        emission.call(name, emission.pointer(int32), *values, sem=sem)


def test_an_unknown_scope_is_refused() -> None:
    emission = Emission()
    with pytest.raises(InvalidOption, match="`scope`"):
        emission.call("atomic_add", emission.pointer(int32), 1, scope="cluster")


def test_constant_memory_takes_no_atomic() -> None:
    emission = Emission()
    with pytest.raises(StoreToConst):
        emission.call("atomic_add", emission.pointer(int32, const=True), 1)


def test_a_number_is_no_pointer() -> None:
    emission = Emission()
    with pytest.raises(NotAPointer):
        emission.call("atomic_add", emission.value(int32, 4), 1)


def test_a_tile_does_not_fit_a_scalar_pointer() -> None:
    emission = Emission()
    with pytest.raises(ShapeMismatch, match="`val`"):
        emission.call("atomic_add", emission.pointer(int32), emission.value(int32, 4))


@tilewright.jit
def impatient_kernel(flag, out, timeout):
    tl.store(out, tl.atomic_poll(flag, 1, timeout_ns=timeout).to(tl.int32))
    tl.store(out + 1, tl.atomic_poll(flag, 0, timeout_ns=timeout).to(tl.int32))


def test_a_poll_ends_after_its_time() -> None:
    flag, compiled, interpreted = (np.zeros(2, np.int32) for _ in range(3))
    impatient_kernel[(1,)](flag, compiled, 50_000)
    interpret(impatient_kernel, (1,), flag, interpreted, 50_000)
    assert compiled.tolist() == interpreted.tolist() == [0, 1]


def test_a_poll_has_one_pointer_and_a_scalar_timeout() -> None:
    emission = Emission()
    with pytest.raises(DtypeNotAllowed, match="timeout_ns"):
        emission.call("atomic_poll", emission.pointer(int32), 1, timeout_ns=0.5)
    with pytest.raises(InvalidOption, match="`timeout_ns` is -1"):
        emission.call("atomic_poll", emission.pointer(int32), 1, timeout_ns=-1)
    with pytest.raises(ShapeMismatch, match="scalar pointer"):
        emission.call("atomic_poll", emission.pointer(int32, 4), 1)
