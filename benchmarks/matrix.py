"""Matrix products beside torch (MKL, oneDNN) and beside the measured peak of multiply-adds."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator

import numpy as np

import tilewright
import tilewright.language as tl
from benchmarks.cpu_microkernel import Peak
from benchmarks.harness import Pairs, Row, measure_pairs, show_seconds
from benchmarks.peers import MISSING, load_torch
from examples.matmul import matmul_kernel
from tilewright.targets.cpu.host import host_machine

FAMILY = "matmul"
THREADS = (1, 2)
SIZES = (512, 1000, 1024, 2048)
AMX_SIZES = (512, 1024, 2048, 4096)
ODD_SHAPES = ((1023, 777, 515), (4096, 64, 512), (64, 4096, 512), (1024, 1024, 17))
"""m, n, k: odd, tall, wide and shallow."""
THIN_SHAPES = (
    *((4096, 32, 4096), (32, 4096, 4096), (1024, 17, 1024), (17, 1024, 1024)),
    *((4096, 4096, 17), (4096, 17, 4096), (17, 4096, 4096)),
)
"""m, n, k: few columns, few rows and little depth of matrices from far away."""
SHALLOW_SHAPES = (((1024, 1024, 17), (256, 1024, 32)), ((4096, 4096, 17), (64, 2048, 32)))
"""m, n, k and the tile: wide ones, where writing rows of the result is what takes the time."""
F32_BARS = {1: 1.0, 2: 0.97}
HALF_BAR, AMX_BAR, INT8_BAR = 0.9, 1.0, 1.15


@dataclasses.dataclass(frozen=True)
class Blocks:
    """The tile of one program."""

    m: int
    n: int
    k: int
    group_m: int = 4


def blocks_for(size: int, threads: int, on_amx: bool = False) -> Blocks:
    """The tile that measured best: the largest that leaves each thread some programs.

    Where the second-level cache holds 2 MiB, B of 512 columns by 256 to 512 steps stays there.
    """
    if on_amx and size > 512:
        # Programs that follow each other have the same columns, and find B packed.
        return dataclasses.replace(LARGE_BLOCKS, group_m=4)
    if on_amx:
        return Blocks(512 // threads, 512, 512, group_m=1)
    if host_machine().l2_bytes >= LARGE_L2_BYTES:
        if size <= 512:
            return Blocks(512 // threads, 256, 512, group_m=1)
        return Blocks(1024 // threads, 512, 256, group_m=1) if size <= 1024 else LARGE_BLOCKS
    if size <= 512 and threads > 1:
        return Blocks(128, 256, 128, group_m=1)
    return Blocks(512, 256, 256, group_m=1)


LARGE_L2_BYTES, LARGE_BLOCKS = 2 << 20, Blocks(1024, 512, 512, group_m=1)
GPU_BLOCKS = (Blocks(128, 128, 64, 8), Blocks(64, 64, 32, 8), Blocks(128, 256, 64, 8))
"""The tiles that people choose for GPUs."""


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    for size in SIZES:
        yield f32_row((size,) * 3, threads, blocks_for(size, threads))
    for shape in ODD_SHAPES:
        yield f32_row(shape, threads, Blocks(128, 128, 128))
    for shape in THIN_SHAPES:
        m, n, _ = shape
        yield f32_row(shape, threads, Blocks(tile_side(m), tile_side(n), 128))
    for shape, (m, n, k) in SHALLOW_SHAPES:
        blocks = Blocks(m, n, k)
        yield f32_row(shape, threads, blocks, tiles_text(blocks))
    for blocks in GPU_BLOCKS:
        yield f32_row((1024,) * 3, threads, blocks, tiles_text(blocks))
    for size in AMX_SIZES if has_amx() else (1024,):
        yield half_row("bf16", size, threads, blocks_for(size, threads, has_amx()))
    yield half_row("bf16", 1000, threads, blocks_for(1000, threads, has_amx()), has_bar=False)
    yield half_row("f16", 1024, threads, blocks_for(1024, threads, has_amx()))
    for blocks in GPU_BLOCKS:
        yield half_row("bf16", 1024, threads, blocks, tiles_text(blocks), has_bar=False)
    for size in (*AMX_SIZES, 1000) if has_amx() else ():
        yield int8_row(size, threads)


def tiles_text(blocks: Blocks) -> str:
    """What a row says of tiles that are not the best ones."""
    return f", tiles of {blocks.m}×{blocks.n}×{blocks.k}"


def tile_side(extent: int) -> int:
    """A side of the tile for rows or columns that may be few; sides are powers of two."""
    return min(tilewright.next_power_of_2(extent), 128)


@tilewright.jit
def int8_matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """`c = a @ b` of bytes, summed in int32; row-major; one program a tile."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K, BK):
        inside = steps < K - k
        x = tl.load(a + (rows % M)[:, None] * K + k + steps[None, :], mask=inside[None, :], other=0)
        y = tl.load(
            b + (k + steps)[:, None] * N + (columns % N)[None, :], mask=inside[:, None], other=0
        )
        acc = tl.dot(x, y, acc)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=mask)


def launch(
    a: object, b: object, c: object, shape: tuple[int, int, int], blocks: Blocks
) -> Callable[[], object]:
    """The call that multiplies two row-major matrices, m×k and k×n."""
    m, n, k = shape
    grid = (tilewright.cdiv(m, blocks.m) * tilewright.cdiv(n, blocks.n),)
    strides = (k, 1, n, 1, n, 1)

    def run() -> None:
        matmul_kernel[grid](
            *(a, b, c, m, n, k, *strides),
            ACTIVATION="",
            BLOCK_M=blocks.m,
            BLOCK_N=blocks.n,
            BLOCK_K=blocks.k,
            GROUP_M=blocks.group_m,
        )

    return run


def f32_row(shape: tuple[int, int, int], threads: int, blocks: Blocks, more: str = "") -> Row:
    """The product of f32 matrices; NumPy arrays as arguments."""
    m, n, k = shape
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    c = np.empty((m, n), np.float32)
    ours = launch(a, b, c, shape, blocks)
    size = f"{m}³" if m == n == k else f"{m}×{n}×{k}"
    work, bar = f"matmul f32 {size}{more}", F32_BARS[threads]
    torch = load_torch(threads)
    ours()
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=bar, note=MISSING)
    x, y, z = (torch.from_numpy(each) for each in (a, b, np.empty_like(c)))
    return row_of(work, shape, threads, bar, ours, lambda: torch.mm(x, y, out=z))


def half_row(
    dtype: str, size: int, threads: int, blocks: Blocks, more: str = "", has_bar: bool = True
) -> Row:
    """The product of bf16 or f16 matrices, f32 sums, rounded; torch tensors as arguments."""
    work = f"matmul {dtype} {size}³{more}"
    bar = (AMX_BAR if has_amx() else HALF_BAR) if has_bar else None
    torch = load_torch(threads)
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=bar, note=MISSING)
    torch.manual_seed(0)
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    x, y = (torch.randn(size, size).to(kind) for _ in range(2))
    z, theirs = torch.empty_like(x), torch.empty_like(x)
    shape = (size,) * 3
    ours = launch(x, y, z, shape, blocks)
    ours()
    torch.testing.assert_close(z.double(), x.double() @ y.double(), rtol=1e-2, atol=0.3)
    return row_of(work, shape, threads, bar, ours, lambda: torch.mm(x, y, out=theirs))


def int8_row(size: int, threads: int) -> Row:
    """The product of matrices of bytes, int32 sums; torch tensors as arguments."""
    work = f"matmul int8 {size}³"
    torch = load_torch(threads)
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=INT8_BAR, note=MISSING)
    torch.manual_seed(0)
    x, y = (torch.randint(-128, 128, (size, size), dtype=torch.int8) for _ in range(2))
    z = torch.empty(size, size, dtype=torch.int32)
    theirs = torch.empty_like(z)
    blocks = blocks_for(size, threads, on_amx=True)
    grid = (tilewright.cdiv(size, blocks.m), tilewright.cdiv(size, blocks.n))
    sizes = {"BM": blocks.m, "BN": blocks.n, "BK": blocks.k}

    def ours() -> None:
        int8_matmul_kernel[grid](x, y, z, size, size, size, **sizes)

    def peer() -> None:
        torch._int_mm(x, y, out=theirs)

    ours()
    peer()
    assert torch.equal(z, theirs)
    return row_of(work, (size,) * 3, threads, INT8_BAR, ours, peer)


def row_of(
    work: str,
    shape: tuple[int, int, int],
    threads: int,
    bar: float | None,
    ours: Callable[[], object],
    peer: Callable[[], object],
) -> Row:
    """Measure both and add the fraction of the peak that each reaches."""
    dtype = next((name for name in ("bf16", "int8") if name in work), "f32")
    # bf16 multiplies in pairs or widened to f32; which is faster depends on the machine.
    peaks = [Peak("i8" if dtype == "int8" else "f32")]
    peaks += [Peak("bf16", bf16_dot=True)] if dtype == "bf16" else []
    before = [max(peak.rate() for peak in peaks) for _ in range(5)]
    pairs = measure_pairs(ours, peer)
    rate = threads * statistics.median([*before, *(max(p.rate() for p in peaks) for _ in range(5))])
    return Row(
        *(FAMILY, work, threads, pairs.ratio),
        bar=bar,
        ours=show_seconds(pairs.ours_seconds),
        peer=f"torch {show_seconds(pairs.peer_seconds)}",
        note="; ".join(filter(None, (of_peak(pairs, 2.0 * math.prod(shape), rate), pairs.note))),
    )


def of_peak(pairs: Pairs, operations: float, rate: float) -> str:
    """How close both come to the peak."""
    ours, peer = (operations / rate / t for t in (pairs.ours_seconds, pairs.peer_seconds))
    return f"ours {ours:.0%}, torch {peer:.0%} of {rate / 1e9:.0f} GFLOP/s"


def has_amx() -> bool:
    """Whether this process may multiply bf16 on AMX's tile registers, as oneDNN then does too."""
    return host_machine().has_feature("amx-bf16")
