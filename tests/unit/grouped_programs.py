"""Products of a group, whose addresses, sizes and strides lie in arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright
import tilewright.language as tl
from tilewright.ir.op import Array

Shape = tuple[int, int, int]
_FRONT, _GAP = 4096, 64


@tilewright.jit
def by_pointers(
    a_all, b_all, c_all, sizes, rows, count,
    P: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """A program takes every P-th tile of all products; masked at the edges."""
    tile, first = tl.program_id(0), 0
    for g in range(count):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        columns = tl.cdiv(n, N)
        end = first + tl.cdiv(m, M) * columns
        while tile >= first and tile < end:
            a = tl.load(a_all + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_all + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_all + g).to(tl.pointer_type(tl.float16))
            i = (tile - first) // columns * M + tl.arange(0, M)
            j = (tile - first) % columns * N + tl.arange(0, N)
            kk = tl.arange(0, K)
            x = a + i[:, None] * tl.load(rows + g * 3) + kk[None, :]
            y = b + j[None, :] * tl.load(rows + g * 3 + 1) + kk[:, None]
            acc = tl.zeros((M, N), tl.float32)
            for start in range(0, k, K):
                left = (i < m)[:, None] & (kk < k - start)[None, :]
                right = (kk < k - start)[:, None] & (j < n)[None, :]
                p = tl.load(x, mask=left, other=0.0)
                q = tl.load(y, mask=right, other=0.0)
                acc = tl.dot(p, q, acc)
                x += K
                y += K
            inside = (i < m)[:, None] & (j < n)[None, :]
            at = c + i[:, None] * tl.load(rows + g * 3 + 2) + j[None, :]
            tl.store(at, acc.to(tl.float16), mask=inside)
            tile += P
        first = end


@tilewright.jit
def by_descriptors(
    a_all, b_all, c_all, sizes, rows, count,
    P: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The same with descriptors that a program makes for each product that it has a tile of."""
    tile, first = tl.program_id(0), 0
    for g in range(count):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        columns = tl.cdiv(n, N)
        end = first + tl.cdiv(m, M) * columns
        if tile >= first and tile < end:
            a = tl.load(a_all + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_all + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_all + g).to(tl.pointer_type(tl.float16))
            left = tl.make_tensor_descriptor(a, [m, k], [tl.load(rows + g * 3), 1], [M, K])
            right = tl.make_tensor_descriptor(b, [n, k], [tl.load(rows + g * 3 + 1), 1], [N, K])
            out = tl.make_tensor_descriptor(c, [m, n], [tl.load(rows + g * 3 + 2), 1], [M, N])
            while tile >= first and tile < end:
                i = (tile - first) // columns * M
                j = (tile - first) % columns * N
                acc = tl.zeros((M, N), tl.float32)
                for start in range(0, k, K):
                    acc = tl.dot(left.load([i, start]), right.load([j, start]).T, acc)
                out.store([i, j], acc.to(tl.float16))
                tile += P
        first = end


@tilewright.jit
def stored_by_pointers(
    a_all, b_all, c_all, sizes, rows, count,
    P: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """A program takes every P-th product, tile after tile; it stores by pointers."""
    for g in range(tl.program_id(0), count, P):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        a = tl.load(a_all + g).to(tl.pointer_type(tl.float16))
        b = tl.load(b_all + g).to(tl.pointer_type(tl.float16))
        c = tl.load(c_all + g).to(tl.pointer_type(tl.float16))
        left = tl.make_tensor_descriptor(a, [m, k], [tl.load(rows + g * 3), 1], [M, K])
        right = tl.make_tensor_descriptor(b, [n, k], [tl.load(rows + g * 3 + 1), 1], [N, K])
        columns = tl.cdiv(n, N)
        for tile in range(tl.cdiv(m, M) * columns):
            i, j = tile // columns * M, tile % columns * N
            acc = tl.zeros((M, N), tl.float32)
            for start in range(0, k, K):
                acc = tl.dot(left.load([i, start]), right.load([j, start]).T, acc)
            ii, jj = i + tl.arange(0, M)[:, None], j + tl.arange(0, N)[None, :]
            at = c + ii * tl.load(rows + g * 3 + 2) + jj
            tl.store(at, acc.to(tl.float16), mask=(ii < m) & (jj < n))


class Group:
    """Arrays of small whole halves for products of `shapes` (m, n, k); B is [n, k].

    Rows are padded to multiples of 16 bytes. `arguments` are those of the kernels above. All lie
    in one memory, since programs look at where loads and stores lie: the arguments in front, C
    behind all of A and B, or, `interleaved`, the arrays of each product together.
    """

    def __init__(
        self, rng: np.random.Generator, shapes: Sequence[Shape], *, interleaved: bool = False
    ) -> None:
        a = [(m, k) for m, _, k in shapes]
        b = [(n, k) for _, n, k in shapes]
        c = [(m, n) for m, n, _ in shapes]
        self._memory = _Memory([*a, *b, *c])
        if interleaved:
            parts = [
                self._memory.array(rng, *size)
                for sizes in zip(a, b, c, strict=True)
                for size in sizes
            ]
            self.a, self.b, self.c = parts[0::3], parts[1::3], parts[2::3]
        else:
            self.a, self.b, self.c = ([self._memory.array(rng, *s) for s in of] for of in (a, b, c))
        for product in self.c:
            product[:] = np.nan
        self.shapes = shapes

    def arguments(self) -> tuple[object, ...]:
        """The arrays of addresses, of sizes and of the rows' distances, and how many there are."""
        every = (self.a, self.b, self.c)
        rows = [[part.strides[0] // part.itemsize for part in p] for p in zip(*every, strict=True)]
        numbers = [np.array([part.ctypes.data for part in parts], np.int64) for parts in every]
        numbers += [np.array(self.shapes, np.int32), np.array(rows, np.int32)]
        return (*self._memory.in_front(numbers), len(self.shapes))

    def arrays(self) -> list[Array]:
        """All that the addresses lead to."""
        return [*self.a, *self.b, *self.c]

    def check(self) -> None:
        """Hold every product to NumPy's in float64, rounded once."""
        for a, b, c in zip(self.a, self.b, self.c, strict=True):
            expected = a.astype(np.float64) @ b.astype(np.float64).T
            np.testing.assert_array_equal(c, expected.astype(np.float16))


class _Memory:
    """Bytes in which arrays follow each other, `_GAP` apart, behind a page for arguments."""

    def __init__(self, sizes: Sequence[tuple[int, int]]) -> None:
        room = sum(rows * _width(columns) * 2 + _GAP for rows, columns in sizes)
        self._bytes = np.zeros(_FRONT + room, np.uint8)
        self._end = _FRONT

    def array(self, rng: np.random.Generator, rows: int, columns: int) -> Array:
        """The next array of halves."""
        width = _width(columns)
        start, self._end = self._end, self._end + rows * width * 2 + _GAP
        whole = self._bytes[start : self._end - _GAP].view(np.float16).reshape(rows, width)
        whole[:] = rng.integers(-3, 4, (rows, width))
        return whole[:, :columns]

    def in_front(self, values: Sequence[Array]) -> list[Array]:
        """Copies of small arrays at the front."""
        placed: list[Array] = []
        start = 0
        for value in values:
            end = start + value.nbytes
            assert end <= _FRONT
            part = self._bytes[start:end].view(value.dtype).reshape(value.shape)
            part[:] = value
            placed.append(part)
            start = -(-end // _GAP) * _GAP
        return placed


def _width(columns: int) -> int:
    """The elements between rows of halves, which begin at multiples of 16 bytes."""
    return max(8, -(-columns // 8) * 8)
