"""Reads that come in front of branches find what they found, and nothing else is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.corpus.case import Case
from tests.corpus.run import run_module, tile_module
from tests.corpus.threads import gpu_request
from tests.fuzz.lifted import PROGRAMS, Lifted, generate_lifted
from tests.fuzz.loading import module_at
from tilewright import JITFunction
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.schedule.partition.lifted_reads import lift_reads
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION

FEW, MANY = range(0, 40, 10), range(1000, 3000, 100)


def load(program: Lifted, folder: Path) -> JITFunction:
    """The kernel of a program, from a file."""
    path = folder / f"lifted_{program.seed}.py"
    path.write_text(program.text)
    return module_at(path).kernel


def check(seed: int, folder: Path) -> bool:
    """Run a program before and after its reads came in front; whether one did.

    The interpreter ends with an error at a read of what does not exist.
    """
    program = generate_lifted(seed)
    kernel = load(program, folder)
    case = Case("lifted", kernel, (PROGRAMS,), lambda _: program.values(), lambda _: None)
    module = tile_module(gpu_request(case))
    expected = run_module(case, module, NVIDIA_INTERPRETATION)
    body = find_kernel(module).body.block
    reads = [op for op in body.walk() if isinstance(op, LoadOp)]
    depths = [op.parent for op in reads]
    lift_reads(body, set(reads))
    module.verify()
    found = run_module(case, module, NVIDIA_INTERPRETATION)
    np.testing.assert_array_equal(found["out"], expected["out"], f"seed {seed}:\n{program.text}")
    return depths != [op.parent for op in reads]


@pytest.mark.parametrize("first", FEW)
def test_reads_in_front_of_branches_find_the_same(first: int, tmp_path: Path) -> None:
    moved = [check(seed, tmp_path) for seed in range(first, first + 10)]
    assert sum(moved) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("first", MANY)
def test_reads_in_front_of_branches_find_the_same_many_times(first: int, tmp_path: Path) -> None:
    assert any([check(seed, tmp_path) for seed in range(first, first + 100)])
