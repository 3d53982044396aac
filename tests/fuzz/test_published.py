"""Programs of the shapes of published kernels: what Python makes of the text, whoever runs it."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import eager_language
from tests.fuzz.loading import module_at
from tests.fuzz.published import Published, generate_published
from tilewright import JITFunction
from tilewright.targets.cpu.driver import CpuKernel
from tilewright.targets.cpu.runtime.pool import KernelRecord

FEW, MANY = range(12), range(1000, 1400)


def load(program: Published, folder: Path) -> JITFunction:
    """The kernel of a program, compiled by Python from a file."""
    path = folder / f"published_{program.seed}.py"
    path.write_text(program.kernel_text)
    linecache.checkcache(str(path))
    return module_at(path).kernel


class Beside:
    """A kernel whose launches do not run their atomics alone."""

    def __init__(self, kernel: JITFunction) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., object]:
        def launch(**given: object) -> None:
            compiled = self.kernel.warmup(**given, grid=grid)
            loaded = compiled.loaded
            assert isinstance(loaded, CpuKernel)
            loaded.record.flags &= ~KernelRecord.MAY_BE_ALONE
            self.kernel[grid](**given)

        return launch


def check(seed: int, folder: Path) -> None:
    """Hold the interpreter, the CPU and the simulated GPU to NumPy."""
    program = generate_published(seed)
    kernel, grid = load(program, folder), (program.programs,)
    expected = program.arguments()
    eager_language.run(program.eager_text, expected, program.programs)
    ways = {
        "the interpreter": (kernel.interpret, {}),
        "the CPU": (kernel, {}),
        "beside other launches": (Beside(kernel), {}),
        "threads": (kernel.simulate, {"num_warps": (4, 1, 2, 8)[seed % 4]}),
    }
    for way, (launch, options) in ways.items():
        found = program.arguments()
        launch[grid](**found, enable_fp_fusion=False, **options)
        for name, right in expected.items():
            if isinstance(right, np.ndarray):
                left = np.asarray(found[name])
                if right.dtype.kind not in "iub":
                    left, right = left.astype(np.float64), right.astype(np.float64)
                np.testing.assert_array_equal(left, right, f"seed {seed}, {way}: {name}")


@pytest.mark.parametrize("seed", FEW)
def test_a_published_shape_in_every_way(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_many_published_shapes(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def test_a_seed_gives_one_published_program() -> None:
    assert generate_published(5) == generate_published(5) != generate_published(6)
