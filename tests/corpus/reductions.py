"""Reductions and scans: all axes, dtypes, ties, user combine functions over tuples."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import (
    BF16,
    EXACT,
    INTEGERS,
    Case,
    Close,
    Reference,
    Values,
    blank,
    data,
    is_float,
    normal,
    short,
    whole,
    wide,
)  # fmt: skip

ROWS, COLUMNS = 37, 53
SUM = Close(2e-6, 2e-5)


@tilewright.jit
def row_reduce(x, out, columns, OP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    mask = j < columns
    if OP == "sum":
        r = tl.sum(tl.load(x + row * columns + j, mask=mask, other=0), axis=0)
    elif OP == "xor":
        r = tl.xor_sum(tl.load(x + row * columns + j, mask=mask, other=0), axis=0)
    elif OP == "max":
        a = tl.load(x + row * columns + j, mask=mask, other=0)
        r = tl.max(tl.where(mask, a, tl.load(x + row * columns)), axis=0)
    else:
        a = tl.load(x + row * columns + j, mask=mask, other=0)
        r = tl.min(tl.where(mask, a, tl.load(x + row * columns)), axis=0)
    tl.store(out + row, r)


@tilewright.jit
def tile_reduce(x, out, rows, columns, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.arange(0, N)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    a = tl.load(x + i[:, None] * columns + j[None, :], mask=mask, other=0.0)
    if AXIS == 1:
        tl.store(out + i, tl.sum(a, axis=1), mask=i < rows)
    elif AXIS == 0:
        tl.store(out + tl.program_id(0) * columns + j, tl.sum(a, axis=0), mask=j < columns)
    else:
        tl.store(out + tl.program_id(0), tl.sum(a))


@tilewright.jit
def cube_reduce(x, out, AXIS: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    base = x + tl.program_id(0) * A * B * C
    i = tl.arange(0, A)[:, None, None]
    j = tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    a = tl.load(base + (i * B + j) * C + k)
    r = tl.max(a, axis=AXIS)
    if AXIS == 0:
        o = tl.arange(0, B)[:, None] * C + tl.arange(0, C)[None, :]
        tl.store(out + tl.program_id(0) * B * C + o, r)
    elif AXIS == 1:
        o = tl.arange(0, A)[:, None] * C + tl.arange(0, C)[None, :]
        tl.store(out + tl.program_id(0) * A * C + o, r)
    else:
        o = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
        tl.store(out + tl.program_id(0) * A * B + o, r)


@tilewright.jit
def arg_reduce(x, index, value, OP: tl.constexpr, LEFT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    a = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    if OP == "max":
        v, p = tl.max(a, axis=0, return_indices=True, return_indices_tie_break_left=LEFT)
    else:
        v, p = tl.min(a, axis=0, return_indices=True, return_indices_tie_break_left=LEFT)
    tl.store(index + row, p)
    tl.store(value + row, v)


@tilewright.jit
def column_argmax(x, out, rows, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.program_id(0) * N + tl.arange(0, N)[None, :]
    a = tl.load(x + i * (tl.num_programs(0) * N) + j, mask=i < rows, other=-1000)
    best = tl.argmax(a, axis=0)
    tl.store(out + tl.program_id(0) * N + tl.arange(0, N), best)


@tilewright.jit
def multiply(a, b):
    return a * b


@tilewright.jit
def keep_larger_magnitude(a, b):
    return tl.where(tl.abs(a) >= tl.abs(b), a, b)


@tilewright.jit
def user_reduce(x, products, largest, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + j, mask=j < columns, other=1.0)
    tl.store(products + row, tl.reduce(a, 0, multiply))
    b = tl.load(x + row * columns + j, mask=j < columns, other=0.0)
    tl.store(largest + row, tl.reduce(b, 0, keep_larger_magnitude))


@tilewright.jit
def welford_combine(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@tilewright.jit
def welford(x, means, variances, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    mask = j < columns
    a = tl.load(x + row * columns + j, mask=mask, other=0.0)
    count = mask.to(tl.float32)
    mean, m2, total = tl.reduce((a, tl.zeros_like(a), count), 0, welford_combine)
    tl.store(means + row, mean)
    tl.store(variances + row, m2 / total)


@tilewright.jit
def softmax_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    mask = j < columns
    a = tl.load(x + row * columns + j, mask=mask, other=float("-inf"))
    e = tl.exp(a - tl.max(a, axis=0))
    tl.store(out + row * columns + j, e / tl.sum(e, axis=0), mask=mask)


@tilewright.jit
def normalize_both_ways(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    o = tl.program_id(0) * M * N + i * N + j
    a = tl.load(x + o)
    a -= tl.sum(a, axis=1, keep_dims=True) / N
    a -= tl.sum(a, axis=0, keep_dims=True) / M
    tl.store(out + o, a * a - tl.max(a, axis=1)[:, None])


@tilewright.jit
def scan(x, out, OP: tl.constexpr, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o)
    if OP == "sum":
        r = tl.cumsum(a, axis=0, reverse=REVERSE)
    else:
        r = tl.cumprod(a, axis=0, reverse=REVERSE)
    tl.store(out + o, r)


@tilewright.jit
def tile_scan(x, out, AXIS: tl.constexpr, REVERSE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    o = tl.program_id(0) * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + o, tl.cumsum(tl.load(x + o), axis=AXIS, reverse=REVERSE))


@tilewright.jit
def recurrence(decay_a, value_a, decay_b, value_b):
    return decay_a * decay_b, decay_b * value_a + value_b


@tilewright.jit
def linear_recurrence(decay, x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(decay + o), tl.load(x + o)), 0, recurrence)
    tl.store(out + o, h)


@tilewright.jit
def running_maximum(a, b):
    return tl.maximum(a, b)


@tilewright.jit
def scan_of_maximum(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.associative_scan(tl.load(x + o), 0, running_maximum))


@tilewright.jit
def then(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@tilewright.jit
def compose(x, scales, shifts, columns, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    start = x + tl.program_id(0) * M * columns
    shift = tl.load(start + i * columns + j, mask=j < columns, other=0)
    scale, shift = tl.reduce((shift % 5 + 1, shift), AXIS, then)
    length: tl.constexpr = N if AXIS == 0 else M
    places = tl.program_id(0) * length + tl.arange(0, length)
    tl.store(scales + places, scale)
    tl.store(shifts + places, shift)


def _compose_case(m: int, n: int, columns: int, axis: int) -> Case:
    length = n if axis == 0 else m

    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": whole(rng, (3, m, columns), np.int32, 0, 99), "columns": columns, "AXIS": axis,
            "scales": blank((3, length), np.int32), "shifts": blank((3, length), np.int32),
            "M": m, "N": n,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        x = np.zeros((3, m, n), np.uint32)
        x[:, :, :columns] = a.x
        scales, shifts = np.uint32(1), np.uint32(0)
        for place in range(x.shape[axis + 1]):
            each = x.take(place, axis + 1)
            shifts = shifts * (each % 5 + 1) + each
            scales = scales * (each % 5 + 1)
        a.scales[:], a.shifts[:] = scales.astype(np.int32), shifts.astype(np.int32)

    return Case(f"affine-maps-{m}x{columns}-axis-{axis}", compose, (3,), inputs, reference)


def _row_case(operation: str, dtype: np.dtype, result: np.dtype) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": data(rng, (ROWS, COLUMNS), dtype), "out": blank(ROWS, result),
            "columns": COLUMNS, "OP": operation, "BLOCK": 64,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        if operation == "xor":
            a.out[:] = np.bitwise_xor.reduce(a.x, axis=1)
        elif operation == "sum":
            a.out[:] = a.x.sum(axis=1, dtype=result) if not is_float(dtype) else wide(a.x).sum(1)
        else:
            a.out[:] = (wide(a.x) if is_float(dtype) else a.x).__getattribute__(operation)(axis=1)

    tolerance = EXACT
    if operation == "sum" and is_float(dtype):
        # A half sums in its own precision: each of 52 additions may round.
        tolerance = {2: Close(0.05, 0.1), 4: SUM, 8: Close(1e-14, 1e-13)}[dtype.itemsize]
        tolerance = Close(0.3, 0.6) if dtype == BF16 else tolerance
    is_slow = dtype.itemsize == 8 and dtype.kind == "u"
    name = f"row-{operation}-{short(dtype)}"
    return Case(name, row_reduce, (ROWS,), inputs, reference, tolerance, is_slow)


def _row_cases() -> list[Case]:
    cases = []
    for dtype in (np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64)):
        cases += [_row_case(op, dtype, dtype) for op in ("sum", "max", "min")]
    for dtype in INTEGERS:
        wider = np.dtype(f"{dtype.kind}{max(4, dtype.itemsize)}")
        cases.append(_row_case("sum", dtype, wider))
        cases += [_row_case(op, dtype, dtype) for op in ("max", "min")]
    cases += [_row_case("xor", np.dtype(np.int32), np.dtype(np.int32))]
    return cases


def _tile_case(axis: int) -> Case:
    programs = 3

    def inputs(rng: np.random.Generator) -> Values:
        size = {1: ROWS, 0: programs * COLUMNS, 2: programs}[axis]
        return {
            "x": normal(rng, (ROWS, COLUMNS)), "out": blank(size), "rows": ROWS,
            "columns": COLUMNS, "AXIS": axis, "M": 16, "N": 64,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        padded = np.zeros((programs * 16, COLUMNS))
        padded[:ROWS] = a.x
        blocks = padded.reshape(programs, 16, COLUMNS)
        result = {1: padded.sum(1)[:ROWS], 0: blocks.sum(1), 2: blocks.sum((1, 2))}[axis]
        a.out[:] = result.ravel()

    return Case(f"tile-sum-axis-{axis}", tile_reduce, (programs,), inputs, reference, SUM)


def _cube_case(axis: int) -> Case:
    shape = (4, 8, 16)

    def inputs(rng: np.random.Generator) -> Values:
        rest = int(np.prod(shape)) // shape[axis]
        return {
            "x": whole(rng, (5, *shape)), "out": blank(5 * rest, np.int32), "AXIS": axis,
            "A": 4, "B": 8, "C": 16,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = a.x.max(axis=axis + 1).ravel()

    return Case(f"cube-max-axis-{axis}", cube_reduce, (5,), inputs, reference)


def _arg_case(operation: str, is_left: bool, dtype: DTypeLike) -> Case:
    block = 128

    def inputs(rng: np.random.Generator) -> Values:
        # Few distinct values, so that every row has ties.
        x = rng.integers(-3, 4, (ROWS, block)).astype(dtype)
        return {
            "x": x, "index": blank(ROWS, np.int32), "value": blank(ROWS, dtype), "OP": operation,
            "LEFT": is_left, "BLOCK": block,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        best = getattr(a.x, operation)(axis=1)
        a.value[:] = best
        hits = a.x == best[:, None]
        a.index[:] = hits.argmax(axis=1)

    side = "left" if is_left else "free"
    name = f"arg{operation}-{side}-{short(dtype)}"
    return Case(name, arg_reduce, (ROWS,), inputs, reference)


def _column_reference(a: SimpleNamespace) -> None:
    a.out[:] = a.x.argmax(axis=0)


def _user_reference(a: SimpleNamespace) -> None:
    a.products[:] = wide(a.x).prod(axis=1)
    a.largest[:] = a.x[np.arange(ROWS), np.abs(a.x).argmax(axis=1)]


def _welford_reference(a: SimpleNamespace) -> None:
    a.means[:] = wide(a.x).mean(axis=1)
    a.variances[:] = wide(a.x).var(axis=1)


def _softmax_reference(a: SimpleNamespace) -> None:
    e = np.exp(wide(a.x) - wide(a.x).max(axis=1, keepdims=True))
    a.out[:] = e / e.sum(axis=1, keepdims=True)


def _both_ways_reference(a: SimpleNamespace) -> None:
    x = wide(a.x)
    x = x - x.mean(axis=2, keepdims=True)
    x = x - x.mean(axis=1, keepdims=True)
    a.out[:] = x * x - x.max(axis=2, keepdims=True)


def _scan_case(operation: str, is_reverse: bool, dtype: DTypeLike) -> Case:
    block, kind = 64, np.dtype(dtype)

    def inputs(rng: np.random.Generator) -> Values:
        x = data(rng, (9, block), kind)
        result = kind if is_float(kind) else np.dtype(f"{kind.kind}{max(4, kind.itemsize)}")
        return {
            "x": x, "out": blank((9, block), result), "OP": operation, "REVERSE": is_reverse,
            "BLOCK": block,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        x = wide(a.x) if is_float(kind) else a.x.astype(a.out.dtype)
        function = np.cumsum if operation == "sum" else np.cumprod
        x = x[:, ::-1] if is_reverse else x
        r = function(x, axis=1, dtype=x.dtype)
        a.out[:] = r[:, ::-1] if is_reverse else r

    tolerance = Close(3e-5, 2e-5) if is_float(kind) else EXACT
    tolerance = Close(1e-13, 1e-13) if kind.itemsize == 8 and is_float(kind) else tolerance
    name = f"scan-{operation}-{'reverse-' if is_reverse else ''}{short(kind)}"
    return Case(name, scan, (9,), inputs, reference, tolerance)


def _tile_scan_case(axis: int, is_reverse: bool) -> Case:
    shape = (7, 8, 32)

    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": whole(rng, shape), "out": blank(shape, np.int32), "AXIS": axis,
            "REVERSE": is_reverse, "M": 8, "N": 32,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        x = np.flip(a.x, axis + 1) if is_reverse else a.x
        r = np.cumsum(x, axis=axis + 1, dtype=np.int32)
        a.out[:] = np.flip(r, axis + 1) if is_reverse else r

    name = f"tile-scan-axis-{axis}{'-reverse' if is_reverse else ''}"
    return Case(name, tile_scan, (7,), inputs, reference)


def _recurrence_reference(a: SimpleNamespace) -> None:
    h = np.zeros(a.x.shape[0])
    for t in range(a.x.shape[1]):
        h = wide(a.decay[:, t]) * h + wide(a.x[:, t])
        a.out[:, t] = h


def _recurrence_inputs(rng: np.random.Generator) -> Values:
    shape = (6, 256)
    return {
        "decay": rng.uniform(0.5, 1, shape).astype(np.float32), "x": normal(rng, shape),
        "out": blank(shape), "BLOCK": 256,
    }  # fmt: skip


def _maximum_reference(a: SimpleNamespace) -> None:
    a.out[:] = np.maximum.accumulate(a.x, axis=1)


def _rows(
    kernel: object, name: str, reference: Reference, tolerance: Close, **outs: object
) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {"x": normal(rng, (ROWS, COLUMNS)), **{n: blank(s) for n, s in outs.items()},
                "columns": COLUMNS, "BLOCK": 64}  # fmt: skip

    return Case(name, kernel, (ROWS,), inputs, reference, tolerance)


CASES = [
    *_row_cases(),
    *(_tile_case(axis) for axis in (0, 1, 2)),
    *(_cube_case(axis) for axis in (0, 1, 2)),
    *(_arg_case(op, True, dtype) for op in ("max", "min") for dtype in (np.float32, np.int32)),
    _arg_case("max", True, np.int8),
    Case(
        "column-argmax", column_argmax, (4,),
        lambda rng: {
            "x": whole(rng, (29, 64), np.int32, -9, 9), "out": blank(64, np.int32), "rows": 29,
            "M": 32, "N": 16,
        },
        _column_reference,
    ),
    _rows(user_reduce, "user-reduce", _user_reference, Close(1e-5), products=ROWS, largest=ROWS),
    _rows(welford, "welford", _welford_reference, Close(1e-5, 1e-6), means=ROWS, variances=ROWS),
    *(_compose_case(*case) for case in ((1, 1024, 1000, 1), (4, 512, 512, 1), (512, 4, 4, 0))),
    _rows(softmax_rows, "softmax", _softmax_reference, Close(2e-6), out=(ROWS, COLUMNS)),
    Case(
        "normalize-both-ways", normalize_both_ways, (3,),
        lambda rng: {"x": normal(rng, (3, 16, 32)), "out": blank((3, 16, 32)), "M": 16, "N": 32},
        _both_ways_reference, Close(1e-5, 1e-5),
    ),
    *(_scan_case("sum", r, d) for r in (False, True) for d in (np.float32, np.int32, np.int8)),
    _scan_case("sum", False, np.float64),
    _scan_case("sum", True, np.uint16),
    _scan_case("prod", False, np.float32),
    _scan_case("prod", True, np.int64),
    *(_tile_scan_case(axis, r) for axis in (0, 1) for r in (False, True)),
    Case("linear-recurrence", linear_recurrence, (6,), _recurrence_inputs, _recurrence_reference,
         Close(1e-4, 1e-4)),
    Case(
        "scan-of-maximum", scan_of_maximum, (5,),
        lambda rng: {"x": normal(rng, (5, 128)), "out": blank((5, 128)), "BLOCK": 128},
        _maximum_reference,
    ),
]  # fmt: skip
