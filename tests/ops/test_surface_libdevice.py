"""`tl.extra.libdevice`: every name, the choice among its forms, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.emission import Emission
from tests.ops.harness import interpret
from tilewright.language.core import float16, float32, float64, int32, int64, uint32
from tilewright.ops.extern.ir import EXTERNS, ExternElementwiseOp
from tilewright.ops.extern.meanings import MEANINGS
from tilewright.ops.extern.reference import REFERENCES
from tilewright.ops.extern.surface import NAMES
from tilewright.support.errors import DtypeNotAllowed, UnsupportedError


def test_every_published_name_is_there() -> None:
    assert len(NAMES) == 198
    assert all(callable(getattr(tl.extra.libdevice, name)) for name in NAMES)
    assert set(NAMES) <= set(MEANINGS)


def test_every_function_has_a_reference() -> None:
    assert {row.routine for row in EXTERNS.values()} == set(REFERENCES)


def dtype_after(name: str, *operands: object) -> object:
    emission = Emission()
    values = [emission.value(o, 4) if not isinstance(o, int | float) else o for o in operands]  # type: ignore[arg-type]
    return emission.call(f"extra.libdevice.{name}", *values).dtype  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "operands", "result"),
    [
        ("erfc", (float32,), float32),
        ("erfc", (float64,), float64),
        ("clz", (int64,), int32),
        ("popc", (uint32,), int32),
        ("mulhi", (uint32, uint32), uint32),
        ("pow", (float32, int32), float32),
        ("pow", (float64, 2.5), float64),
        ("fmod", (float64, float32), float64),
        ("ldexp", (float64, int32), float64),
        ("jn", (int32, float64), float64),
        ("float2uint_rz", (float32,), int32),
        ("float_as_uint", (float32,), int32),
        ("signbit", (float64,), int32),
        ("hiloint2double", (int32, int32), float64),
    ],
)
def test_the_form_follows_from_the_operands(
    name: str, operands: tuple[object, ...], result: object
) -> None:
    assert dtype_after(name, *operands) == result


@pytest.mark.parametrize("name", ["isnan", "isinf"])
def test_predicates_are_booleans(name: str) -> None:
    assert str(dtype_after(name, float32)) == "int1"


@pytest.mark.parametrize(
    ("name", "operands"),
    [("erfc", (float16,)), ("brev", (float32,)), ("ldexp", (float32, float32))],
)
def test_a_refusal_lists_the_forms(name: str, operands: tuple[object, ...]) -> None:
    with pytest.raises(DtypeNotAllowed, match=rf"{name}\(\): there is no form .* it takes \("):
        dtype_after(name, *operands)


def test_functions_with_an_op_of_their_own_use_it() -> None:
    emission = Emission()
    x = emission.value(float32, 4)
    for name in ("exp", "rint", "fma", "isnan", "erfc"):
        emission.call(f"extra.libdevice.{name}", *[x] * (3 if name == "fma" else 1))
    assert emission.names() == [
        *("math.exp", "math.roundeven", "math.fma", "arith.cmpf"),
        ExternElementwiseOp.name,
    ]


@tilewright.jit
def kernel(x, n, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    v, k = tl.load(x + at), tl.load(n + at)
    tl.store(out + at, tl.extra.libdevice.lgamma(v))
    tl.store(out + SIZE + at, tl.extra.libdevice.scalbn(v, k))
    tl.store(out + 2 * SIZE + at, tl.extra.libdevice.norm4d(v, 2.0, v, 0.0))
    tl.store(out + 3 * SIZE + at, tl.extra.libdevice.int2float_rz(k))
    tl.store(out + 4 * SIZE + at, tl.extra.libdevice.jn(k, v))


def test_interpreter_and_cpu_agree_on_every_arity(rng: np.random.Generator) -> None:
    x = rng.uniform(0.5, 9, 64).astype(np.float32)
    n = rng.integers(-9, 9, 64).astype(np.int32)
    interpreted, compiled = (np.zeros((5, 64), np.float32) for _ in range(2))
    interpret(kernel, (1,), x, n, interpreted, SIZE=64)
    kernel[(1,)](x, n, compiled, SIZE=64)
    np.testing.assert_allclose(compiled, interpreted, rtol=2e-7)
    np.testing.assert_array_equal(compiled[1], np.ldexp(x, n))


def test_an_unknown_symbol_says_what_works() -> None:
    emission = Emission()
    x = emission.value(float32, 4)
    emission.call("extra.libdevice.erfc", x)
    (op,) = (op for op in emission.block.ops if isinstance(op, ExternElementwiseOp))
    op.properties["symbol"] = type(op.symbol)("__nv_zetaf")
    with pytest.raises(UnsupportedError, match="__nv_zetaf"):
        op.extern()


@pytest.mark.parametrize("name, count", [("rhypot", 2), ("rnorm3d", 3), ("rnorm4d", 4)])
def test_a_reciprocal_norm_is_no_zero_where_the_norm_overflows(name: str, count: int) -> None:
    operands = [np.array([1.7e308, 3.0, 0.0, np.inf])] * count
    expected = np.array([1 / 1.7e308 / np.sqrt(count), 1 / 3.0 / np.sqrt(count), np.inf, 0.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        actual = REFERENCES[name](*operands)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
