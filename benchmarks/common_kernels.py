"""The kernels of `benchmarks.common`: sums, counts, picks, copies, scans, sorts."""

from __future__ import annotations

import tilewright
import tilewright.language as tl


@tilewright.jit
def sum_rows_kernel(x, out, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """`out[r] = Σ x[r, :]`."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDTH)
    mask = (r[:, None] < rows) & (c[None, :] < width)
    tile = tl.load(x + r[:, None] * width + c[None, :], mask=mask, other=0.0)
    tl.store(out + r, tl.sum(tile, axis=1), mask=r < rows)


@tilewright.jit
def sum_columns_kernel(x, out, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """`out[c] = Σ x[:, c]`."""
    c = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for first in range(0, rows, ROWS):
        r = first + tl.arange(0, ROWS)
        mask = (r[:, None] < rows) & (c[None, :] < width)
        total += tl.sum(tl.load(x + r[:, None] * width + c[None, :], mask=mask, other=0.0), axis=0)
    tl.store(out + c, total, mask=c < width)


@tilewright.jit
def row_kernel(x, out, width, KIND: tl.constexpr, WIDTH: tl.constexpr):
    """One number of each row: its maximum, where that is, or the entropy of its softmax."""
    r, c = tl.program_id(0), tl.arange(0, WIDTH)
    row = tl.load(x + r * width + c, mask=c < width, other=-float("inf"))
    if KIND == "max":
        tl.store(out + r, tl.max(row, axis=0))
    elif KIND == "argmax":
        tl.store(out + r, tl.argmax(row, axis=0))
    else:
        most = tl.max(row, axis=0)
        tl.store(
            out + r, tl.log(tl.sum(tl.exp(row - most), axis=0)) + most - tl.load(x + r * width)
        )


@tilewright.jit
def sum_kernel(x, out, n, BLOCK: tl.constexpr):
    """The sum of everything, by one atomic for each program."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@tilewright.jit
def histogram_kernel(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """How often each number below `BINS` occurs."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + i, mask=i < n, other=0), BINS, mask=i < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@tilewright.jit
def count_kernel(x, out, n, BLOCK: tl.constexpr):
    """The same, by an atomic for each element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@tilewright.jit
def embedding_kernel(table, index, out, width, IS_GRADIENT: tl.constexpr, WIDTH: tl.constexpr):
    """A row of a table for each index, or each row added to its place in a table."""
    p, c = tl.program_id(0), tl.arange(0, WIDTH)
    row = tl.load(index + p)
    if IS_GRADIENT:
        tl.atomic_add(
            out + row * width + c, tl.load(table + p * width + c, mask=c < width), c < width
        )
    else:
        tl.store(out + p * width + c, tl.load(table + row * width + c, mask=c < width), c < width)


@tilewright.jit
def pick_kernel(x, index, out, n, IS_SCATTER: tl.constexpr, BLOCK: tl.constexpr):
    """`out[i] = x[index[i]]`, or `out[index[i]] = x[i]`."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + i, mask=i < n, other=0)
    if IS_SCATTER:
        tl.store(out + place, tl.load(x + i, mask=i < n), mask=i < n)
    else:
        tl.store(out + i, tl.load(x + place, mask=i < n), mask=i < n)


@tilewright.jit
def transpose_kernel(x, out, rows, width, TILE: tl.constexpr):
    """`out[c, r] = x[r, c]`."""
    r = tl.program_id(0) * TILE + tl.arange(0, TILE)
    c = tl.program_id(1) * TILE + tl.arange(0, TILE)
    mask = (r[:, None] < rows) & (c[None, :] < width)
    tile = tl.load(x + r[:, None] * width + c[None, :], mask=mask)
    mask = (c[:, None] < width) & (r[None, :] < rows)
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(tile), mask=mask)


@tilewright.jit
def strided_kernel(x, out, n, first, step, BLOCK: tl.constexpr):
    """`out[i] = x[first + step * i]`."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + first + i * step, mask=i < n), mask=i < n)


@tilewright.jit
def reverse_kernel(x, out, n, BLOCK: tl.constexpr):
    """`out[i] = x[n - 1 - i]`."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + n - 1 - i, mask=i < n), mask=i < n)


@tilewright.jit
def binary_kernel(x, y, out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """A sum, a quotient, a remainder, or the one where the other is positive."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=1)
    b = tl.load(y + i, mask=i < n, other=1)
    if KIND == "add":
        result = a + b
    elif KIND == "divide":
        result = a // b
    elif KIND == "remainder":
        result = a % b
    else:
        result = tl.where(b > 0, a, 0.1 * a)
    tl.store(out + i, result.to(out.dtype.element_ty), mask=i < n)


@tilewright.jit
def scan_kernel(x, out, width, WIDTH: tl.constexpr):
    """Sums of the first elements of a row."""
    r, c = tl.program_id(0), tl.arange(0, WIDTH)
    row = tl.load(x + r * width + c, mask=c < width, other=0.0)
    tl.store(out + r * width + c, tl.cumsum(row, axis=0), mask=c < width)


@tilewright.jit
def sort_kernel(x, out, WIDTH: tl.constexpr, K: tl.constexpr):
    """The elements of a row in order, or the `K` greatest of them."""
    r, c = tl.program_id(0), tl.arange(0, WIDTH)
    row = tl.load(x + r * WIDTH + c)
    tl.store(out + r * K + tl.arange(0, K), tl.sort(row) if K == WIDTH else tl.topk(row, K))


@tilewright.jit
def quantize_kernel(x, out, scales, width, WIDTH: tl.constexpr):
    """A row as int8 with a scale of its own, toward zero."""
    r, c = tl.program_id(0), tl.arange(0, WIDTH)
    row = tl.load(x + r * width + c, mask=c < width, other=0.0)
    scale = tl.max(tl.abs(row), axis=0) / 127.0
    tl.store(scales + r, scale)
    tl.store(out + r * width + c, (row / scale).to(tl.int8), mask=c < width)


@tilewright.jit
def matvec_kernel(a, x, out, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """`out = a @ x` as sums of products, without `dot`."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for first in range(0, width, WIDTH):
        c = first + tl.arange(0, WIDTH)
        mask = (r[:, None] < rows) & (c[None, :] < width)
        tile = tl.load(a + r[:, None] * width + c[None, :], mask=mask, other=0.0)
        total += tl.sum(tile * tl.load(x + c, mask=c < width, other=0.0)[None, :], axis=1)
    tl.store(out + r, total, mask=r < rows)
