"""Launches of persistent kernels against a fake GPU: the same on both paths."""

from __future__ import annotations

import pytest

from tilewright.runtime.grid import MAX_TILES, persistent_grid
from tilewright.runtime.launcher import SLOW_PATH
from tilewright.support.errors import InvalidGrid

from .fake_cuda import FakeCuda, FakeTensor
from .test_driver import MAPPED_PARAMETERS, PARAMETERS, RECIPE, loaded

NAMES = [[["x"], "*fp32"], [["h"], "i32"], [["w"], "i32"], [["s"], "i64"]]


@pytest.mark.parametrize(
    ("grid", "programs"),
    [((1, 1, 1), 1), ((5, 1, 1), 5), ((5, 3, 2), 30), ((700, 1, 1), 48), ((2, 3, 700), 48)],
)
def test_no_more_programs_start_than_run_at_once(grid: tuple[int, int, int], programs: int):
    cuda = FakeCuda(is_persistent=True)
    kernel = loaded(cuda, most_programs=3)  # 16 programs of 128 threads run on an SM
    launcher = kernel.fast_launcher(PARAMETERS, (FakeTensor(0x7000), 9, 64))
    assert launcher is not None
    kernel.launch(grid, (0x7000, 9))
    assert launcher(*grid, FakeTensor(0x7000), 9, 64) is None
    for launch in cuda.launches:
        assert launch.grid == (programs, 1, 1) and launch.asked_grid == grid
        assert launch.words == (0x7000, 9)
    assert len(cuda.launches) == 2


@pytest.mark.parametrize(
    ("grid", "programs"), [((1, 1, 1), 2), ((5, 1, 1), 10), ((700, 1, 1), 48), ((2, 3, 700), 48)]
)
def test_programs_that_load_for_each_other_start_in_pairs(
    grid: tuple[int, int, int], programs: int
):
    cuda = FakeCuda(is_persistent=True)
    kernel = loaded(cuda, most_programs=3, cluster=2)
    launcher = kernel.fast_launcher(PARAMETERS, (FakeTensor(0x7000), 9, 64))
    assert launcher is not None
    kernel.launch(grid, (0x7000, 9))
    assert launcher(*grid, FakeTensor(0x7000), 9, 64) is None
    assert [launch.grid for launch in cuda.launches] == [(programs, 1, 1)] * 2
    assert [launch.asked_grid for launch in cuda.launches] == [grid] * 2


def test_the_grid_stands_behind_the_tensor_maps():
    cuda = FakeCuda(is_persistent=True, num_maps=1)
    slots = ("ptr", "i32", "i32", "i64")
    kernel = loaded(cuda, slots=slots, arguments=NAMES, tensor_maps=[RECIPE], most_programs=1)
    x = FakeTensor(0x7000)
    launcher = kernel.fast_launcher(MAPPED_PARAMETERS, (x, 64, 48, 64))
    assert launcher is not None
    kernel.launch((4, 50, 1), (0x7000, 64, 48, 64))
    assert launcher(4, 50, 1, x, 64, 48, 64) is None
    slow, fast = cuda.launches
    assert slow == fast
    assert (fast.grid, fast.asked_grid) == ((16, 1, 1), (4, 50, 1))
    assert fast.maps == ((0x7000, 2, 48, 64, 256),)


def test_a_plain_kernel_starts_all_programs_and_takes_no_grid():
    cuda = FakeCuda()
    loaded(cuda, most_programs=0).launch((700, 2, 1), (0x7000, 9))
    assert cuda.launches[0].grid == (700, 2, 1) and cuda.launches[0].asked_grid == ()


@pytest.mark.parametrize(
    "grid",
    [(MAX_TILES + 1, 1, 1), (1 << 16, 1 << 15, 1), ((1 << 31) - 1,) * 3, (1 << 20, 1, 1 << 11)],
)
def test_grids_that_a_persistent_kernel_cannot_count_are_refused(grid: tuple[int, int, int]):
    cuda = FakeCuda(is_persistent=True)
    kernel = loaded(cuda, most_programs=132)
    launcher = kernel.fast_launcher(PARAMETERS, (FakeTensor(0x7000), 9, 64))
    assert launcher is not None
    assert launcher(*grid, FakeTensor(0x7000), 9, 64) is SLOW_PATH
    with pytest.raises(InvalidGrid, match="is too large for a kernel that stays on its SMs"):
        kernel.launch(grid, (0x7000, 9))
    assert cuda.launches == []


def test_the_largest_grid_is_counted():
    assert persistent_grid((1 << 15, 1 << 15, 1), 132) == (132, 1, 1)
