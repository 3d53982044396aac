"""Programs that walk over numbers and tiles, on a GPU: each visits what it is to visit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import torch
from tests.fuzz.loading import module_at
from tests.fuzz.walks import CAPACITY, TooLong, generate_walk, visited
from tests.unit.targets.nvidia.test_grid_strides import BLOCKS, WALKS
from tilewright import JITFunction

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("first", range(5000, 5200, 25))
def test_random_walks_visit_what_python_does(first: int, tmp_path: Path) -> None:
    assert sum(visits(seed, tmp_path) for seed in range(first, first + 25)) >= 12


def visits(seed: int, folder: Path) -> bool:
    """Whether a program ends soon; it then visits those numbers."""
    program = generate_walk(seed)
    try:
        expected = visited(program)
    except TooLong:
        return False
    path = folder / f"walk_{seed}.py"
    path.write_text(program.text)
    kernel, given = module_at(path).kernel, program.arguments()
    arrays = {name: torch.from_numpy(v).cuda() for name, v in given.items() if hasattr(v, "dtype")}
    kernel[(program.programs,)](**{**given, **arrays})
    log = arrays["log"].cpu().numpy().reshape(program.programs, CAPACITY)
    for numbers, row in zip(expected, log, strict=True):
        assert row.tolist() == numbers + [-77] * (CAPACITY - len(numbers)), f"seed {seed}"
    return True


@pytest.mark.parametrize("programs", [1, 7, 132])
@pytest.mark.parametrize("size", [(1000, 264, 72), (2049, 1000, 1000), (17, 4097, 200)], ids=str)
@pytest.mark.parametrize("kernel", WALKS, ids=lambda kernel: kernel.fn.__name__)
def test_tiles_of_any_walk_are_those_of_torch(
    kernel: JITFunction, size: tuple[int, int, int], programs: int
) -> None:
    rng, (m, n, k) = np.random.default_rng(programs), size
    numbers = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    a, b = (torch.from_numpy(part).cuda() for part in numbers)
    c = torch.full((m, n), 99.0, device="cuda")
    grid = (programs, 2 if "two_axes" in kernel.fn.__name__ else 1)
    kernel[grid](a.bfloat16(), b.bfloat16(), c, m, n, k, **BLOCKS)
    assert torch.equal(c.double(), a.double() @ b.double())


@pytest.mark.parametrize("programs", [1, 7, 132])
@pytest.mark.parametrize("size", [(1000, 520, 136), (4000, 5000, 3000), (17, 1000, 200)], ids=str)
@pytest.mark.parametrize("kernel", WALKS, ids=lambda kernel: kernel.fn.__name__)
def test_pairs_of_programs_load_for_each_other(
    kernel: JITFunction, size: tuple[int, int, int], programs: int
) -> None:
    m, n, k = size
    a, b = (torch.randint(-3, 4, shape, device="cuda").bfloat16() for shape in ((m, k), (k, n)))
    c = torch.full((m, n), 99.0, device="cuda")
    grid = (programs, 2 if "two_axes" in kernel.fn.__name__ else 1)
    kernel[grid](a, b, c, m, n, k, **BLOCKS | {"BN": 256, "num_warps": 4})
    assert torch.equal(c.double(), a.double() @ b.double())
