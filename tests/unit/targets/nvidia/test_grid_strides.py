"""Products by pointers whose programs take one tile after the other, as far apart as programs are.

How many programs there are is known at a launch, so the copy engine loads, and roles are made.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.persistent_kernels import run_on, scheduled_for
from tilewright import JITFunction
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import find_roles
from tilewright.runtime.launch_numbers import fits

SMS = 132
BLOCKS = {"BM": 128, "BN": 128, "BK": 64}
LAUNCHES = [((300, 200, 136), 2), ((1000, 264, 72), 5), ((64, 1000, 64), 1), ((200, 136, 8), 40)]
FIRST, LAST = LAUNCHES[0], LAUNCHES[-1]


@tilewright.jit
def tile_of(a, b, c, m, n, k, row, column, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One tile of c = a @ b; the tile starts at `row`, `column`."""
    i, j, l = row + tl.arange(0, BM), column + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at = start + l
        x = tl.load(a + i[:, None] * k + at[None, :], (i[:, None] < m) & (at[None, :] < k), 0.0)
        y = tl.load(b + at[:, None] * n + j[None, :], (at[:, None] < k) & (j[None, :] < n), 0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * n + j[None, :], acc, (i[:, None] < m) & (j[None, :] < n))


@tilewright.jit
def strided(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Every so many of the tiles, row by row."""
    columns = tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), tl.cdiv(m, BM) * columns, tl.num_programs(0)):
        row, column = tile // columns * BM, tile % columns * BN
        tile_of(a, b, c, m, n, k, row, column, BM, BN, BK)


@tilewright.jit
def grouped(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Every so many of the tiles, in groups of two rows."""
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), rows * columns, tl.num_programs(0)):
        first, place = tile // (2 * columns) * 2, tile % (2 * columns)
        height = min(rows - first, 2)
        row, column = (first + place % height) * BM, place // height * BN
        tile_of(a, b, c, m, n, k, row, column, BM, BN, BK)


@tilewright.jit
def swizzled(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The same by the language's own function."""
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), rows * columns, tl.num_programs(0)):
        i, j = tl.swizzle2d(tile // columns, tile % columns, rows, columns, 2)
        tile_of(a, b, c, m, n, k, i * BM, j * BN, BM, BN, BK)


@tilewright.jit
def chunked(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Neighbouring tiles, as many for each program but the last ones."""
    columns = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * columns
    each = tl.cdiv(tiles, tl.num_programs(0))
    first = tl.program_id(0) * each
    for tile in range(first, min(first + each, tiles)):
        row, column = tile // columns * BM, tile % columns * BN
        tile_of(a, b, c, m, n, k, row, column, BM, BN, BK)


@tilewright.jit
def counted(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Every so many of the tiles, by the number of the step."""
    columns, first, apart = tl.cdiv(n, BN), tl.program_id(0), tl.num_programs(0)
    for step in range(0, tl.cdiv(tl.cdiv(m, BM) * columns - first, apart)):
        tile = first + step * apart
        row, column = tile // columns * BM, tile % columns * BN
        tile_of(a, b, c, m, n, k, row, column, BM, BN, BK)


@tilewright.jit
def grouped_steps(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The same in groups of two rows: a tile behind the last one would be in a group of none."""
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for step in range(tl.cdiv(rows * columns - tl.program_id(0), tl.num_programs(0))):
        tile = step * tl.num_programs(0) + tl.program_id(0)
        first, place = tile // (2 * columns) * 2, tile % (2 * columns)
        height = min(rows - first, 2)
        row, column = (first + place % height) * BM, place // height * BN
        tile_of(a, b, c, m, n, k, row, column, BM, BN, BK)


@tilewright.jit
def carried(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile carried from step to step, in as many steps as each program has, or one more."""
    columns, tile = tl.cdiv(n, BN), tl.program_id(0)
    tiles = tl.cdiv(m, BM) * columns
    steps = tiles // tl.num_programs(0)
    if tile < tiles % tl.num_programs(0):
        steps += 1
    for _ in range(steps):
        tile_of(a, b, c, m, n, k, tile // columns * BM, tile % columns * BN, BM, BN, BK)
        tile += tl.num_programs(0)


@tilewright.jit
def ahead(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The tile before the first one is carried, and each step goes on to the next."""
    columns, programs = tl.cdiv(n, BN), tl.num_programs(0)
    tiles, tile = tl.cdiv(m, BM) * columns, tl.program_id(0) - programs
    for _ in range(tiles // programs + (tl.program_id(0) < tiles % programs)):
        tile += programs
        tile_of(a, b, c, m, n, k, tile // columns * BM, tile % columns * BN, BM, BN, BK)


@tilewright.jit
def flattened(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One loop over the steps of all tiles, in groups of two rows."""
    rows, columns, depth = tl.cdiv(m, BM), tl.cdiv(n, BN), tl.cdiv(k, BK)
    programs, start = tl.num_programs(0), -1
    tile, i, j = tl.program_id(0) - programs, tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    tiles = rows * columns // programs + (tl.program_id(0) < rows * columns % programs)
    for _ in range(0, depth * tiles):
        start = tl.where(start == depth - 1, 0, start + 1)
        if start == 0:
            tile += programs
            first, place = tile // (2 * columns) * 2, tile % (2 * columns)
            height = min(rows - first, 2)
            i = (first + place % height) * BM + tl.arange(0, BM)
            j = place // height * BN + tl.arange(0, BN)
        at = start * BK + tl.arange(0, BK)
        x = tl.load(a + i[:, None] * k + at[None, :], (i[:, None] < m) & (at[None, :] < k), 0.0)
        y = tl.load(b + at[:, None] * n + j[None, :], (at[:, None] < k) & (j[None, :] < n), 0.0)
        acc = tl.dot(x, y, acc)
        if start == depth - 1:
            tl.store(c + i[:, None] * n + j[None, :], acc, (i[:, None] < m) & (j[None, :] < n))
            acc = tl.zeros((BM, BN), tl.float32)


@tilewright.jit
def until(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """By `while`, in groups of two rows."""
    rows, columns, tile = tl.cdiv(m, BM), tl.cdiv(n, BN), tl.program_id(0)
    while tile < rows * columns:
        first, place = tile // (2 * columns) * 2, tile % (2 * columns)
        height = min(rows - first, 2)
        row, column = (first + place % height) * BM, place // height * BN
        tile_of(a, b, c, m, n, k, row, column, BM, BN, BK)
        tile += tl.num_programs(0)


@tilewright.jit
def along_two_axes(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows of tiles by one axis of the grid, columns by another."""
    for i in range(tl.program_id(0), tl.cdiv(m, BM), tl.num_programs(0)):
        for j in range(tl.program_id(1), tl.cdiv(n, BN), tl.num_programs(1)):
            tile_of(a, b, c, m, n, k, i * BM, j * BN, BM, BN, BK)


BY_STEPS = [counted, grouped_steps, carried, ahead]
WALKS = [strided, grouped, swizzled, chunked, *BY_STEPS, flattened, until, along_two_axes]


def operands(rng: np.random.Generator, m: int, n: int, k: int) -> tuple[np.ndarray, ...]:
    """Whole numbers as bf16, whose products are exact, and what holds no result yet."""
    a, b = (rng.integers(-3, 4, s).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))
    return a, b, np.full((m, n), 99, np.float32)


RUNS = [
    (kernel, *launch)
    for kernel in WALKS
    for launch in (LAUNCHES if kernel in (strided, counted, until) else (FIRST, LAST))
]
"""Each walk with a few programs and with more than tiles; the first of a kind with others."""


def name_of(part: object) -> str:
    """A part of a run in the name of its test."""
    return part.fn.__name__ if isinstance(part, JITFunction) else str(part)


@pytest.mark.parametrize(("kernel", "size", "programs"), RUNS, ids=name_of)
def test_tiles_of_any_walk_run_as_roles(
    rng: np.random.Generator, kernel: JITFunction, size: tuple[int, int, int], programs: int
) -> None:
    a, b, c = operands(rng, *size)
    grid = (programs, 1 + programs % 2 if kernel is along_two_axes else 1, 1)
    ran = run_on(SMS, kernel, grid, (a, b, c, *size), seed=programs, **BLOCKS)
    assert find_roles(find_kernel(ran.module)) is not None
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("kernel", WALKS, ids=lambda kernel: kernel.fn.__name__)
def test_a_launch_keeps_to_what_indices_hold(rng: np.random.Generator, kernel: JITFunction) -> None:
    """Rows behind 2^30, and elements behind 2^31, are not for the copy engine."""
    size, _ = LAUNCHES[0]
    scheduled, _, _ = scheduled_for(kernel, (*operands(rng, *size), *size), SMS, BLOCKS)
    arrays, grid = (1 << 20, 1 << 21, 1 << 22), (7, 1, 1)
    assert fits(scheduled.metadata, grid, (*arrays, *size))
    assert not fits(scheduled.metadata, grid, (*arrays, (1 << 30) + 300, *size[1:]))
    assert not fits(scheduled.metadata, grid, (*arrays, 1 << 24, *size[1:]))


WIDE = BLOCKS | {"BN": 256, "num_warps": 4}
CLUSTER = "2 programs are a cluster"


@pytest.mark.parametrize("kernel", [grouped, until, flattened], ids=lambda k: k.fn.__name__)
@pytest.mark.parametrize(("programs", "is_shared"), [(2, True), (3, False)])
def test_pairs_load_for_each_other_where_rows_cross_lines(
    rng: np.random.Generator, kernel: JITFunction, programs: int, is_shared: bool
) -> None:
    """Rows of 136 and 520 elements are not in as many lines as they fill; odd grids stay alone."""
    size = (300, 520, 136)
    a, b, c = operands(rng, *size)
    ran = kernel.simulate[(programs,)](a, b, c, *size, seed=programs, **WIDE)
    assert any(CLUSTER in remark for remark in ran.remarks) is is_shared
    assert any("runs as roles" in remark for remark in ran.remarks)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((300, 512, 128), {}),
        ((300, 520, 136), {"cluster_dims": (1, 1, 1)}),
        ((300, 520, 136), {"launch_cooperative_grid": True}),
    ],
    ids=["whole lines", "alone", "cooperative"],
)
def test_programs_stay_alone_where_nothing_is_gained_or_the_author_says_so(
    rng: np.random.Generator, size: tuple[int, int, int], options: dict[str, object]
) -> None:
    scheduled, _, _ = scheduled_for(grouped, (*operands(rng, *size), *size), SMS, WIDE | options)
    assert not any(CLUSTER in remark for remark in scheduled.remarks)
    is_cooperative = "launch_cooperative_grid" in options
    assert (find_roles(find_kernel(scheduled.module)) is None) is is_cooperative
