"""Kernels that people write and benchmarks forget, each beside the op of torch that does it.

Sums over either axis, histograms, gathers, transposes, strided copies, narrow integers, sorts.
Rows come worst first. A kernel that is half as fast as torch counts as a fault.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

import tilewright
from benchmarks import common_kernels as kernels
from benchmarks.harness import Row
from benchmarks.peers import compare_with_torch
from tilewright import cdiv

FAMILY = "common"
THREADS = (1,)
BAR = 0.5
SIZE, BLOCK = 1 << 22, 4096

Peer = Callable[[ModuleType], Callable[[], object]]
Case = tuple[Callable[[], np.ndarray], Peer, float]
"""Our call, torch's, and by how much the results may differ."""
EXACT, SUMMED, ROUNDED = 0.0, 1e-4, 1e-5


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family, the worst first."""
    measured = []
    for work, make in CASES.items():
        ours, peer, tolerance = make(np.random.default_rng(0))
        measured.append(compare_with_torch(FAMILY, work, threads, BAR, ours, peer, tolerance))
    yield from sorted(measured, key=lambda row: row.value or 0.0)


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random-normal f32 values."""
    return rng.standard_normal(shape, dtype=np.float32)


def row_case(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Case:
    """One number of each row."""
    x, (height, width) = normal(rng, *shape), shape
    out = np.empty(height, np.int64 if kind == "argmax" else np.float32)
    block = tilewright.next_power_of_2(width)

    def ours() -> np.ndarray:
        kernels.row_kernel[(height,)](x, out, width, KIND=kind, WIDTH=block)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        t, zeros = torch.from_numpy(x), torch.zeros(height, dtype=torch.int64)
        if kind == "entropy":
            loss = torch.nn.functional.cross_entropy
            return lambda: loss(t, zeros, reduction="none")
        return lambda: getattr(t, {"max": "amax"}.get(kind, kind))(1)

    return ours, peer, ROUNDED


def sum_case(axis: int, tile: tuple[int, int], shape: tuple[int, int]) -> Callable[..., Case]:
    """The sums along one axis of a matrix."""

    def make(rng: np.random.Generator) -> Case:
        x, out = normal(rng, *shape), np.empty(shape[1 - axis], np.float32)
        kernel = kernels.sum_rows_kernel if axis else kernels.sum_columns_kernel
        grid = (cdiv(shape[1 - axis], tile[1 - axis]),)

        def ours() -> np.ndarray:
            kernel[grid](x, out, *shape, ROWS=tile[0], WIDTH=tile[1])
            return out

        def peer(torch: ModuleType) -> Callable[[], object]:
            tensor = torch.from_numpy(x)
            return lambda: tensor.sum(axis)

        return ours, peer, SUMMED

    return make


def flat_case(
    kernel: tilewright.JITFunction,
    inputs: tuple[np.ndarray, ...],
    out: np.ndarray,
    peer: Callable[..., object],
    arguments: tuple[int, ...] = (),
    clears: bool = False,
    tolerance: float = EXACT,
    **constants: object,
) -> Case:
    """A kernel over all elements; `peer` takes torch, the inputs, and where its result may go."""
    size = max(array.size for array in inputs) if not arguments else out.size

    def ours() -> np.ndarray:
        if clears:
            out[...] = 0
        kernel[(cdiv(size, BLOCK),)](*inputs, out, size, *arguments, BLOCK=BLOCK, **constants)
        return out

    def call(torch: ModuleType) -> Callable[[], object]:
        tensors = [torch.from_numpy(array) for array in (*inputs, np.empty_like(out))]
        return lambda: peer(torch, *tensors)

    return ours, call, tolerance


def binary_case(kind: str, dtype: str) -> Callable[..., Case]:
    """Two arrays of a type element by element."""

    def make(rng: np.random.Generator) -> Case:
        low = 1 if kind == "divide" else -50
        if np.dtype(dtype).kind == "f":
            x, y = normal(rng, 2, SIZE).astype(dtype)
        else:
            x, y = rng.integers(low, 50, (2, SIZE)).astype(dtype)
        peers = {
            "add": lambda torch, a, b, c: torch.add(a, b, out=c),
            "divide": lambda torch, a, b, c: torch.div(a, b, rounding_mode="trunc", out=c),
            "remainder": lambda torch, a, b, c: torch.fmod(a, b, out=c),
            "choose": lambda torch, a, b, c: torch.where(b > 0, a, 0.1 * a, out=c),
        }
        out = np.empty_like(x)
        return flat_case(
            *(kernels.binary_kernel, (x, y), out, peers[kind]), tolerance=1e-3, KIND=kind
        )

    return make


def transpose_case(dtype: str, size: int, tile: int) -> Callable[..., Case]:
    """A square matrix transposed in tiles."""

    def make(rng: np.random.Generator) -> Case:
        x = (normal(rng, size, size) * 20).astype(dtype)
        out = np.empty_like(x)

        def ours() -> np.ndarray:
            kernels.transpose_kernel[(cdiv(size, tile),) * 2](x, out, size, size, TILE=tile)
            return out

        def peer(torch: ModuleType) -> Callable[[], object]:
            tensor, into = torch.from_numpy(x), torch.from_numpy(np.empty_like(x))
            return lambda: into.copy_(tensor.t())

        return ours, peer, EXACT

    return make


def sort_case(width: int, count: int, rng: np.random.Generator) -> Case:
    """Rows sorted, or the greatest of each."""
    x = normal(rng, (1 << 18) // width, width)
    out = np.empty((len(x), count), np.float32)

    def ours() -> np.ndarray:
        kernels.sort_kernel[(len(x),)](x, out, WIDTH=width, K=count)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        t = torch.from_numpy(x)
        return lambda: t.sort(1)[0] if count == width else t.topk(count)[0]

    return ours, peer, EXACT


def scan_case(rng: np.random.Generator) -> Case:
    """Rows of sums of the elements so far."""
    x = normal(rng, 1024, 1000)
    out = np.empty_like(x)

    def ours() -> np.ndarray:
        kernels.scan_kernel[(1024,)](x, out, 1000, WIDTH=1024)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        tensor, into = torch.from_numpy(x), torch.from_numpy(np.empty_like(x))
        return lambda: torch.cumsum(tensor, 1, out=into)

    return ours, peer, SUMMED


def quantize_case(rng: np.random.Generator) -> Case:
    """Rows as int8."""
    x = normal(rng, 4096, 1000)
    out, scales = np.empty(x.shape, np.int8), np.empty(4096, np.float32)

    def ours() -> np.ndarray:
        kernels.quantize_kernel[(4096,)](x, out, scales, 1000, WIDTH=1024)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        t = torch.from_numpy(x)
        return lambda: (t / (t.abs().amax(1, keepdim=True) / 127)).to(torch.int8)

    return ours, peer, EXACT


def matvec_case(tile: tuple[int, int]) -> Callable[..., Case]:
    """A matrix times a vector."""

    def make(rng: np.random.Generator) -> Case:
        a, x, out = normal(rng, 2048, 2000), normal(rng, 2000), np.empty(2048, np.float32)

        def ours() -> np.ndarray:
            kernels.matvec_kernel[(2048 // tile[0],)](
                a, x, out, *a.shape, ROWS=tile[0], WIDTH=tile[1]
            )
            return out

        def peer(torch: ModuleType) -> Callable[[], object]:
            matrix, vector = torch.from_numpy(a), torch.from_numpy(x)
            return lambda: matrix @ vector

        return ours, peer, SUMMED

    return make


def embedding_case(is_gradient: bool, rng: np.random.Generator) -> Case:
    """Rows taken out of a table by index, or added to a table."""
    count, height, width = (2048, 1000, 256) if is_gradient else (4096, 30000, 768)
    index = rng.integers(0, height, count)
    table = normal(rng, count if is_gradient else height, width)
    out = np.zeros((height if is_gradient else count, width), np.float32)
    block = tilewright.next_power_of_2(width)

    def ours() -> np.ndarray:
        if is_gradient:
            out[...] = 0
        kernels.embedding_kernel[(count,)](
            table, index, out, width, IS_GRADIENT=is_gradient, WIDTH=block
        )
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        t, i = torch.from_numpy(table), torch.from_numpy(index)
        if is_gradient:
            sums = torch.zeros(height, width)
            return lambda: sums.zero_().index_add_(0, i, t)
        into = torch.empty(count, width)
        return lambda: torch.index_select(t, 0, i, out=into)

    return ours, peer, SUMMED


def counted(kernel: tilewright.JITFunction, **constants: object) -> Callable[..., Case]:
    """How often each of 256 numbers occurs."""

    def make(rng: np.random.Generator) -> Case:
        x, out = rng.integers(0, 256, SIZE).astype(np.int32), np.zeros(256, np.int32)

        def peer(torch: ModuleType, t: object, into: object) -> object:
            return torch.bincount(t, minlength=256)

        return flat_case(kernel, (x,), out, peer, clears=True, **constants)

    return make


def picked(is_scatter: bool, rng: np.random.Generator) -> Case:
    """Elements read, or written, in a random order."""
    x, index = normal(rng, 1 << 20), rng.permutation(1 << 20)

    def peer(torch: ModuleType, t: object, i: object, into: Any) -> object:
        return into.scatter_(0, i, t) if is_scatter else torch.index_select(t, 0, i, out=into)

    return flat_case(kernels.pick_kernel, (x, index), np.empty_like(x), peer, IS_SCATTER=is_scatter)


def strided(step: int) -> Callable[..., Case]:
    """Every n-th element."""

    def make(rng: np.random.Generator) -> Case:
        x, out = normal(rng, step * SIZE), np.empty(SIZE, np.float32)
        return flat_case(
            *(
                kernels.strided_kernel,
                (x,),
                out,
                lambda torch, t, into: into.copy_(t[::step]),
                (0, step),
            )
        )

    return make


def whole_sum(rng: np.random.Generator) -> Case:
    """The sum of everything."""
    x, out, kernel = normal(rng, SIZE), np.zeros(1, np.float32), kernels.sum_kernel

    def peer(torch: ModuleType, t: Any, into: object) -> object:
        return t.sum().reshape(1)

    return flat_case(kernel, (x,), out, peer, clears=True, tolerance=1e-3)


def reversed_copy(rng: np.random.Generator) -> Case:
    """An array from its end to its start."""
    x = normal(rng, SIZE)
    return flat_case(
        kernels.reverse_kernel, (x,), np.empty_like(x), lambda torch, t, into: t.flip(0)
    )


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "sums of rows f32 4096×1000, 16 rows a program": sum_case(1, (16, 1024), (4096, 1000)),
    "sums of rows f32 262144×16, 128 rows a program": sum_case(1, (128, 16), (1 << 18, 16)),
    "sums of columns f32 4096×1000, tiles of 64×64": sum_case(0, (64, 64), (4096, 1000)),
    "maxima of rows f32 4096×1000": functools.partial(row_case, "max", (4096, 1000)),
    "argmax of rows f32 4096×1000": functools.partial(row_case, "argmax", (4096, 1000)),
    "cross entropy f32 4096×1000": functools.partial(row_case, "entropy", (4096, 1000)),
    "cross entropy f32 512×32000": functools.partial(row_case, "entropy", (512, 32000)),
    "sum of 2^22 f32 by atomics": whole_sum,
    "histogram of 256 bins, 2^22 int32": counted(kernels.histogram_kernel, BINS=256),
    "histogram by an atomic for each of 2^22 int32": counted(kernels.count_kernel),
    "embedding f32, 4096 rows of 768": functools.partial(embedding_case, False),
    "gradient of an embedding f32 by atomics, 2048 rows of 256": functools.partial(
        embedding_case, True
    ),
    "gather of 2^20 f32": functools.partial(picked, False),
    "scatter of 2^20 f32": functools.partial(picked, True),
    "transpose f32 2048×2048, tiles of 64×64": transpose_case("float32", 2048, 64),
    "transpose f32 2000×2000, tiles of 32×32": transpose_case("float32", 2000, 32),
    "transpose f16 2048×2048, tiles of 64×64": transpose_case("float16", 2048, 64),
    "transpose int8 2048×2048, tiles of 64×64": transpose_case("int8", 2048, 64),
    "every second of 2^23 f32": strided(2),
    "every third of 3·2^22 f32": strided(3),
    "reversal of 2^22 f32": reversed_copy,
    "x + y int8 2^22": binary_case("add", "int8"),
    "x + y int64 2^22": binary_case("add", "int64"),
    "x + y f16 2^22": binary_case("add", "float16"),
    "x // y int32 2^22": binary_case("divide", "int32"),
    "x % y f32 2^22": binary_case("remainder", "float32"),
    "where f16 2^22": binary_case("choose", "float16"),
    "cumsum of rows f32 1024×1000": scan_case,
    "sort of rows f32 1024×256": functools.partial(sort_case, 256, 256),
    "top 8 of rows f32 256×1024": functools.partial(sort_case, 1024, 8),
    "rows to int8 with scales f32 4096×1000": quantize_case,
    "matrix times vector f32 2048×2000, tiles of 16×128": matvec_case((16, 128)),
    "matrix times vector f32 2048×2000, tiles of 1×1024": matvec_case((1, 1024)),
}
"""The work of each row, and what makes it."""
