"""LLVM's instructions on integers, floats, vectors and structs against NumPy and Python."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.simt.programs import random_bits, run
from tilewright.interp.simt.parse import parse_module
from tilewright.support.errors import MalformedText, UnsupportedError

N = 64


def each(code: str, x: np.ndarray, y: np.ndarray, result: np.dtype) -> np.ndarray:
    """Lines that make `%r` of `%a` and `%b`, whose types are those of the arrays."""
    kind, target = (
        {"float32": "float", "float64": "double"}.get(d.name, f"i{8 * d.itemsize}")
        for d in (x.dtype, result)
    )
    out = np.zeros(N, result)
    body = ""
    for name, pointer in (("a", "x"), ("b", "y")):
        body += f"  %p{name} = getelementptr {kind}, ptr addrspace(1) %{pointer}, i32 %tid\n"
        body += f"  %{name} = load {kind}, ptr addrspace(1) %p{name}\n"
    body += code
    body += f"  %po = getelementptr {target}, ptr addrspace(1) %out, i32 %tid\n"
    body += f"  store {target} %r, ptr addrspace(1) %po\n"
    run(body, "x; y; out", x, y, out)
    return out


def signed_pairs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, N, dtype, endpoint=True)
    y = rng.integers(1, 100, N).astype(dtype) * rng.choice([-1, 1], N).astype(dtype)
    return x, y


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_signed_division_truncates(dtype: type) -> None:
    x, y = signed_pairs(dtype)
    kind = f"i{8 * x.itemsize}"
    quotient = each(f"  %r = sdiv {kind} %a, %b\n", x, y, x.dtype)
    rest = each(f"  %r = srem {kind} %a, %b\n", x, y, x.dtype)
    for a, b, q, r in zip(x.tolist(), y.tolist(), quotient.tolist(), rest.tolist(), strict=True):
        exact = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        wrapped = (exact + (1 << 8 * x.itemsize - 1)) % (1 << 8 * x.itemsize)
        assert q == wrapped - (1 << 8 * x.itemsize - 1)
        assert r == a - exact * b


@pytest.mark.parametrize(
    ("code", "reference"),
    [
        ("  %c = icmp slt i32 %a, %b\n  %r = select i1 %c, i32 %a, i32 %b\n", np.minimum),
        ("  %r = ashr i32 %a, 7\n", lambda a, b: a >> 7),
        ("  %s = trunc i32 %a to i13\n  %r = sext i13 %s to i32\n", lambda a, b: a << 19 >> 19),
        ("  %s = trunc i32 %a to i13\n  %r = zext i13 %s to i32\n", lambda a, b: a & 0x1FFF),
        ("  %r = call i32 @llvm.abs.i32(i32 %a, i1 false)\n", lambda a, b: np.abs(a)),
        ("  %r = call i32 @llvm.smax.i32(i32 %a, i32 %b)\n", np.maximum),
        ("  %r = call i32 @llvm.fshl.i32(i32 %a, i32 %a, i32 5)\n",
         lambda a, b: (a << 5) | (a.view(np.uint32) >> np.uint32(27)).view(np.int32)),
        ("  %r = call i32 @llvm.ctpop.i32(i32 %a)\n",
         lambda a, b: np.bitwise_count(a.view(np.uint32))),
        ("  %r = call i32 @llvm.cttz.i32(i32 %b, i1 false)\n",
         lambda a, b: np.array([(int(v) & -int(v)).bit_length() - 1 for v in b])),
        ("  %v = bitcast i32 %a to <4 x i8>\n"
         "  %w = shufflevector <4 x i8> %v, <4 x i8> %v, <4 x i32> <i32 3, i32 2, i32 1, i32 0>\n"
         "  %r = bitcast <4 x i8> %w to i32\n", lambda a, b: a.byteswap()),
        ("  %w = sext i32 %a to i128\n  %v = sext i32 %b to i128\n  %m = mul i128 %w, %v\n"
         "  %h = lshr i128 %m, 32\n  %r = trunc i128 %h to i32\n",
         lambda a, b: (a.astype(np.int64) * b >> 32).astype(np.int32)),
    ],
)  # fmt: skip
def test_integer_instructions(code: str, reference: object) -> None:
    x, y = signed_pairs(np.int32)
    assert callable(reference)
    got = each(code, x, y, x.dtype)
    np.testing.assert_array_equal(got, np.asarray(reference(x, y)).astype(np.int32))


@pytest.mark.parametrize(
    "predicate", ["oeq", "ogt", "olt", "one", "ord", "ueq", "ult", "une", "uno"]
)
def test_float_comparisons_treat_nan_as_they_say(predicate: str) -> None:
    values = np.array([0.0, -0.0, 1.0, np.nan, np.inf, -1.0, 2.0, np.nan], np.float32)
    x, y = np.repeat(values, 8), np.tile(values, 8)
    got = each(
        f"  %c = fcmp {predicate} float %a, %b\n  %r = zext i1 %c to i32\n",
        x,
        y,
        np.dtype(np.int32),
    )
    unordered = np.isnan(x) | np.isnan(y)
    relation = {"eq": x == y, "gt": x > y, "lt": x < y, "ne": (x != y) & ~unordered}
    if predicate in ("ord", "uno"):
        expected = unordered if predicate == "uno" else ~unordered
    else:
        expected = relation[predicate[1:]] | (unordered if predicate[0] == "u" else False)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("name", "function"),
    [("minnum", np.fmin), ("maxnum", np.fmax), ("minimum", np.minimum), ("maximum", np.maximum)],
)
def test_minima_and_maxima_with_nan(name: str, function: object) -> None:
    values = np.array([0.0, 3.0, -1.0, np.nan, np.inf, -np.inf, 2.0, 1e-40], np.float32)
    x, y = np.repeat(values, 8), np.tile(values, 8)
    got = each(f"  %r = call float @llvm.{name}.f32(float %a, float %b)\n", x, y, x.dtype)
    assert callable(function)
    np.testing.assert_array_equal(got, function(x, y))


def test_float_to_int_saturates_and_nan_is_zero() -> None:
    x = np.resize(np.array([1.9, -1.9, 3e9, -3e9, np.nan, 0.5], np.float32), N)
    got = each("  %r = fptosi float %a to i32\n", x, x, np.dtype(np.int32))
    assert got[:6].tolist() == [1, -1, 2**31 - 1, -(2**31), 0, 0]


def test_structs_keep_their_layout_in_memory() -> None:
    x = random_bits(4 * N, 1)
    out = np.zeros(4 * N, np.uint32)
    kind = "{i8, i32, i16}"
    run(
        f"""  %p = getelementptr {kind}, ptr addrspace(1) %x, i32 %tid
  %s = load {kind}, ptr addrspace(1) %p
  %m = extractvalue {kind} %s, 1
  %n = insertvalue {kind} %s, i32 7, 1
  %q = getelementptr {kind}, ptr addrspace(1) %x, i32 %tid, i32 1
  %v = load i32, ptr addrspace(1) %q
  %d = sub i32 %m, %v
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %d, ptr addrspace(1) %o
""",
        "x; out",
        x,
        out,
    )
    assert not out[:N].any()


def test_local_memory_is_each_threads_own() -> None:
    out = np.zeros(N, np.int32)
    run(
        """  %local = alloca [4 x i32], align 16
  %index = and i32 %tid, 3
  %p = getelementptr [4 x i32], ptr %local, i32 0, i32 %index
  store i32 %tid, ptr %p
  %v = load i32, ptr %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %v, ptr addrspace(1) %o
""",
        "out",
        out,
    )
    np.testing.assert_array_equal(out, np.arange(N))


def test_unknown_instructions_and_functions_are_named() -> None:
    with pytest.raises(MalformedText, match="LLVM line 3: unknown instruction 'frobnicate'"):
        parse_module("define void @k() {\nentry:\n  frobnicate i32 1\n}\n")
    with pytest.raises(UnsupportedError, match=r"llvm\.nvvm\.fence\.sc\.cluster"):
        run("  call void @llvm.nvvm.fence.sc.cluster()\n", "")
