"""Elementwise arithmetic, comparison and functions over every dtype, with odd tails."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import (
    BF16,
    EXACT,
    FLOATS,
    INTEGERS,
    Array,
    Case,
    Close,
    Values,
    blank,
    data,
    normal,
    short,
    whole,
    wide,
)  # fmt: skip

N, BLOCK_SIZE = 1003, 128
GRID = (8,)
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


@tilewright.jit
def binary(x, y, out, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=1)
    b = tl.load(y + i, mask=i < n, other=1)
    if OP == "add":
        c = a + b
    elif OP == "sub":
        c = a - b
    elif OP == "mul":
        c = a * b
    elif OP == "truediv":
        c = a / b
    elif OP == "floordiv":
        c = a // b
    elif OP == "mod":
        c = a % b
    elif OP == "and":
        c = a & b
    elif OP == "or":
        c = a | b
    elif OP == "xor":
        c = a ^ b
    elif OP == "maximum":
        c = tl.maximum(a, b)
    elif OP == "minimum":
        c = tl.minimum(a, b)
    elif OP == "lt":
        c = a < b
    elif OP == "le":
        c = a <= b
    elif OP == "gt":
        c = a > b
    elif OP == "ge":
        c = a >= b
    elif OP == "eq":
        c = a == b
    else:
        c = a != b
    tl.store(out + i, c, mask=i < n)


@tilewright.jit
def shifts(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    # Amounts of every dtype that are negative, within the width, and beyond it.
    by = (i % 97 - 8).to(out.dtype.element_ty)
    b = (a >> by) ^ (a << (by + 1)) ^ (a << 64) ^ (a >> 65)
    tl.store(out + i, (a >> 2) ^ (a << 3) ^ b, mask=i < n)


@tilewright.jit
def unary(x, out, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=1)
    if OP == "neg":
        c = -a
    elif OP == "abs":
        c = tl.abs(a)
    elif OP == "exp":
        c = tl.exp(a)
    elif OP == "exp2":
        c = tl.exp2(a)
    elif OP == "log":
        c = tl.log(a)
    elif OP == "log2":
        c = tl.log2(a)
    elif OP == "sin":
        c = tl.sin(a)
    elif OP == "cos":
        c = tl.cos(a)
    elif OP == "sqrt":
        c = tl.sqrt(a)
    elif OP == "rsqrt":
        c = tl.rsqrt(a)
    elif OP == "erf":
        c = tl.erf(a)
    elif OP == "floor":
        c = tl.floor(a)
    elif OP == "ceil":
        c = tl.ceil(a)
    elif OP == "sigmoid":
        c = tl.sigmoid(a)
    else:
        c = ~a
    tl.store(out + i, c, mask=i < n)


@tilewright.jit
def chain(x, y, z, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask, other=0)
    b = tl.load(y + i, mask=mask, other=0)
    c = tl.load(z + i, mask=mask, other=0)
    d = (a * b + c) * factor - a
    tl.store(out + i, tl.where(d > c, d, b - d), mask=mask)


@tilewright.jit
def low_precision_chain(x, y, z, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask, other=0)
    b = tl.load(y + i, mask=mask, other=0)
    c = tl.load(z + i, mask=mask, other=0)
    tl.store(out + i, (a * b + c) - a, mask=mask)


@tilewright.jit
def ternary(x, y, z, out, clamped, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    b = tl.load(y + i, mask=i < n, other=0.0)
    c = tl.load(z + i, mask=i < n, other=0.0)
    tl.store(out + i, tl.fma(a, b, c), mask=i < n)
    tl.store(clamped + i, tl.clamp(a, -0.5, 0.75), mask=i < n)


@tilewright.jit
def mixed_types(x8, x16, xf, out, kind, n, scalar, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x8 + i, mask=i < n, other=0)
    b = tl.load(x16 + i, mask=i < n, other=0)
    c = tl.load(xf + i, mask=i < n, other=0.0)
    tl.store(kind + i, a * b + scalar, mask=i < n)
    tl.store(out + i, (a + b) * c, mask=i < n)


@tilewright.jit
def high_products(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    b = tl.load(y + i, mask=i < n, other=0)
    tl.store(out + i, tl.umulhi(a, b), mask=i < n)


@tilewright.jit
def booleans(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    b = tl.load(y + i, mask=i < n, other=0)
    p = a > 0
    q = b < 3
    r = (p & q) | (~p ^ (a == b))
    tl.store(out + i, r, mask=i < n)


@tilewright.jit
def grid_of_three_axes(out, nx, ny, BLOCK: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    program = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    i = tl.arange(0, BLOCK)
    tl.store(out + program * BLOCK + i, i * x - y * 100 + z)


@tilewright.jit
def large_tile(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, a * 2.0 + 1.0, mask=i < n)


@tilewright.jit
def large_square(x, y, out, rows, columns, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    mask = (i < rows) & (j < columns)
    a = tl.load(x + i * columns + j, mask=mask, other=0.0)
    b = tl.load(y + i, mask=i < rows, other=0.0)
    tl.store(out + i * columns + j, a - b, mask=mask)


def _nonzero(array: Array) -> Array:
    array[array == 0] = 3
    return array


def _binary_inputs(dtype: np.dtype, operation: str, result: np.dtype) -> object:
    def make(rng: np.random.Generator) -> Values:
        x, y = data(rng, N, dtype), data(rng, N, dtype)
        if operation in ("truediv", "floordiv", "mod"):
            y = _nonzero(y)
            if dtype.kind == "i":
                y[y == -1] = 2  # the quotient of the lowest integer and -1 does not fit
        if operation in ("eq", "ne", "le", "ge"):
            y[::3] = x[::3]
        return {
            "x": x, "y": y, "out": blank(N, result), "n": N, "OP": operation, "BLOCK": BLOCK_SIZE,
        }  # fmt: skip

    return make


def _quotient(x: Array, y: Array) -> Array:
    if x.dtype.kind == "u":
        return x // y
    floor = x // y
    return floor + ((floor * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)


def _binary_reference(operation: str) -> object:
    functions = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "floordiv": _quotient,
        "mod": np.fmod,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "eq": np.equal,
        "ne": np.not_equal,
    }

    def run(a: SimpleNamespace) -> None:
        with np.errstate(all="ignore"):
            if operation == "truediv":
                a.out[:] = _true_quotient(a.x, a.y)
            else:
                a.out[:] = functions[operation](a.x, a.y)

    return run


def _true_quotient(x: Array, y: Array) -> Array:
    if x.dtype == F64:
        return x / y
    return x.astype(np.float32) / y.astype(np.float32)


def _binary_cases() -> list[Case]:
    arithmetic = ("add", "sub", "mul", "maximum", "minimum", "lt", "ne")
    whole_only = ("floordiv", "mod", "and", "xor")
    cases = []
    for dtype in (*FLOATS, *INTEGERS):
        is_whole = dtype.kind in "iu"
        operations = [*arithmetic, "truediv", *(whole_only if is_whole else ())]
        if dtype in (F32, np.dtype(np.int32)):
            operations += ["le", "gt", "ge", "eq"]
        if dtype in (F32, F64):
            operations.append("mod")
        if dtype == np.dtype(np.uint32):
            operations.append("or")
        for operation in operations:
            is_compare = operation in ("lt", "le", "gt", "ge", "eq", "ne")
            result = np.dtype(np.bool_) if is_compare else dtype
            if operation == "truediv" and dtype != F64:
                result = F32
            cases.append(
                Case(
                    f"{operation}-{short(dtype)}",
                    binary,
                    GRID,
                    _binary_inputs(dtype, operation, result),
                    _binary_reference(operation),
                    # Where fast division is a choice, one unit in the last place is free.
                    Close(2e-7) if operation == "truediv" and dtype != F64 else EXACT,
                    is_slow=dtype not in (F32, BF16, np.dtype(np.int32))
                    and operation != "add"
                    and (operation, dtype.itemsize) != ("floordiv", 1),
                )
            )
    return cases


def _positive(rng: np.random.Generator, dtype: np.dtype) -> Array:
    return (np.abs(rng.standard_normal(N)) + 1e-3).astype(dtype)


_FUNCTIONS = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "exp2": np.exp2, "log": np.log,
    "log2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "floor": np.floor, "ceil": np.ceil, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip
_EXACT_FUNCTIONS = ("neg", "abs", "floor", "ceil")


def _unary_case(operation: str, dtype: np.dtype) -> Case:
    is_positive = operation in ("log", "log2", "sqrt", "rsqrt")

    def inputs(rng: np.random.Generator) -> Values:
        x = _positive(rng, dtype) if is_positive else normal(rng, N, dtype)
        return {"x": x, "out": blank(N, dtype), "n": N, "OP": operation, "BLOCK": BLOCK_SIZE}

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = _FUNCTIONS[operation](wide(a.x))

    tolerance = Close(1e-12, 1e-13) if dtype == F64 else Close(4e-7, 1e-7)
    tolerance = EXACT if operation in _EXACT_FUNCTIONS else tolerance
    return Case(f"{operation}-{short(dtype)}", unary, GRID, inputs, reference, tolerance)


def _invert_case(dtype: np.dtype) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": whole(rng, N, dtype), "out": blank(N, dtype), "n": N, "OP": "not",
            "BLOCK": BLOCK_SIZE,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = ~a.x

    return Case(f"invert-{short(dtype)}", unary, GRID, inputs, reference)


def _shift_case(dtype: np.dtype) -> Case:
    bits = 8 * dtype.itemsize

    def inputs(rng: np.random.Generator) -> Values:
        return {"x": whole(rng, N, dtype), "out": blank(N, dtype), "n": N, "BLOCK": BLOCK_SIZE}

    def shifted(i: int, x: int) -> int:
        by = i % 97 - 8
        left = x << (by + 1) if 0 <= by + 1 < bits else 0
        return (x >> 2) ^ (x << 3) ^ (x >> (by if by >= 0 else bits)) ^ left ^ (x >> 65)

    def reference(a: SimpleNamespace) -> None:
        numbers = [shifted(i, int(x)) % (1 << bits) for i, x in enumerate(a.x)]
        a.out[:] = np.array(numbers, f"u{dtype.itemsize}").view(dtype)

    is_slow = dtype.itemsize in (2, 8)
    return Case(f"shifts-{short(dtype)}", shifts, GRID, inputs, reference, is_slow=is_slow)


def _three(rng: np.random.Generator, dtype: DTypeLike) -> Values:
    return {name: normal(rng, N, dtype) for name in "xyz"} | {
        "out": blank(N, dtype), "n": N, "BLOCK": BLOCK_SIZE
    }  # fmt: skip


def _chain_reference(a: SimpleNamespace) -> None:
    d = (a.x * a.y + a.z) * a.x.dtype.type(1.5) - a.x
    a.out[:] = np.where(d > a.z, d, a.y - d)


def _low_precision_reference(a: SimpleNamespace) -> None:
    a.out[:] = (a.x * a.y + a.z) - a.x


def _ternary_reference(a: SimpleNamespace) -> None:
    a.out[:] = wide(a.x) * wide(a.y) + wide(a.z)
    a.clamped[:] = np.clip(a.x, np.float32(-0.5), np.float32(0.75))


def _mixed_reference(a: SimpleNamespace) -> None:
    product = a.x8.astype(np.int16) * a.x16
    a.kind[:] = product.astype(np.int32) + np.int32(a.scalar)
    a.out[:] = (a.x8.astype(np.int16) + a.x16).astype(np.float32) * a.xf


def _umulhi_reference(a: SimpleNamespace) -> None:
    products = [int(x) * int(y) for x, y in zip(a.x, a.y, strict=True)]
    a.out[:] = [p >> (8 * a.x.itemsize) for p in products]


def _booleans_reference(a: SimpleNamespace) -> None:
    p, q = a.x > 0, a.y < 3
    a.out[:] = (p & q) | (~p ^ (a.x == a.y))


def _axes_reference(a: SimpleNamespace) -> None:
    z, y, x, i = np.indices((2, 3, 5, 16))
    a.out[:] = (i * x - y * 100 + z).ravel()


def _large_reference(a: SimpleNamespace) -> None:
    a.out[:] = a.x * np.float32(2) + np.float32(1)


def _square_reference(a: SimpleNamespace) -> None:
    a.out[:] = a.x - a.y[:, None]


def _square_inputs(rng: np.random.Generator) -> Values:
    rows, columns = 1001, 1023
    return {
        "x": normal(rng, (rows, columns)), "y": normal(rng, rows), "out": blank((rows, columns)),
        "rows": rows, "columns": columns, "SIZE": 1024,
    }  # fmt: skip


def _large_inputs(rng: np.random.Generator) -> Values:
    n = 3 * (1 << 20) - 77
    return {"x": normal(rng, n), "out": blank(n), "n": n, "BLOCK": 1 << 20}


def _umulhi_case(dtype: DTypeLike) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": whole(rng, N, dtype), "y": whole(rng, N, dtype), "out": blank(N, dtype), "n": N,
            "BLOCK": BLOCK_SIZE,
        }  # fmt: skip

    return Case(f"umulhi-{short(dtype)}", high_products, GRID, inputs, _umulhi_reference)


CASES = [
    *_binary_cases(),
    *(_unary_case(name, F32) for name in _FUNCTIONS),
    *(_unary_case(name, F64) for name in ("exp", "log", "sin", "sqrt", "erf")),
    *(_unary_case(name, np.dtype(np.float16)) for name in ("neg", "abs")),
    *(_unary_case(name, BF16) for name in ("neg", "abs")),
    *(_invert_case(dtype) for dtype in INTEGERS[::3]),
    *(_shift_case(dtype) for dtype in INTEGERS),
    *(_umulhi_case(dtype) for dtype in (np.uint32, np.uint64)),
    Case(
        "chain", chain, GRID, lambda rng: _three(rng, np.float32) | {"factor": 1.5},
        _chain_reference,
    ),
    *(
        Case(
            f"low-precision-chain-{short(dtype)}", low_precision_chain, GRID,
            lambda rng, dtype=dtype: _three(rng, dtype), _low_precision_reference,
        )
        for dtype in (np.float16, BF16)
    ),
    Case(
        "fma-and-clamp", ternary, GRID,
        lambda rng: _three(rng, np.float32) | {"clamped": blank(N)},
        _ternary_reference, Close(1e-7, 1e-30),
    ),
    Case(
        "mixed-types", mixed_types, GRID,
        lambda rng: {
            "x8": whole(rng, N, np.int8), "x16": whole(rng, N, np.int16), "xf": normal(rng, N),
            "out": blank(N), "kind": blank(N, np.int32), "n": N, "scalar": 1 << 20,
            "BLOCK": BLOCK_SIZE,
        },
        _mixed_reference,
    ),
    Case(
        "booleans", booleans, GRID,
        lambda rng: {
            "x": whole(rng, N, np.int32, -5, 5), "y": whole(rng, N, np.int32, -5, 5),
            "out": blank(N, np.bool_), "n": N, "BLOCK": BLOCK_SIZE,
        },
        _booleans_reference,
    ),
    Case(
        "grid-of-three-axes", grid_of_three_axes, (5, 3, 2),
        lambda rng: {"out": blank(5 * 3 * 2 * 16, np.int32), "nx": 5, "ny": 3, "BLOCK": 16},
        _axes_reference,
    ),
    Case("large-tile", large_tile, (3,), _large_inputs, _large_reference, is_slow=True),
    Case("large-square", large_square, (1,), _square_inputs, _square_reference, is_slow=True),
]  # fmt: skip
