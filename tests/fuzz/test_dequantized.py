"""Products of scaled and unpacked weights: CPU, simulated threads and the interpreter agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.dequantized import Dequantized, generate_dequantized
from tests.fuzz.loading import module_at
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.stages import stage_text
from tilewright.frontend.devices import DevicePlacement
from tilewright.targets.nvidia.host import named_machine


def load(program: Dequantized, folder: Path) -> JITFunction:
    """The kernel of a program, from a file, so that its source can be found."""
    path = folder / f"dequantized_{program.seed}.py"
    path.write_text(program.text)
    return module_at(path).kernel


def lowered(seed: int, folder: Path) -> str:
    """The LLVM IR of one thread of a program of a seed."""
    program = generate_dequantized(seed)
    given = {**program.arguments(), **program.options}
    call = load(program, folder).specialize_call((), given)
    placement, machine = DevicePlacement("nvidia"), named_machine("sm_90a")
    request = make_request(call.source, call.specialization, call.options, placement, machine)
    return stage_text(request, "llir")


def check(seed: int, folder: Path) -> None:
    """Hold compiled code and the threads of a GPU to the interpreter."""
    program = generate_dequantized(seed)
    kernel, expected = load(program, folder), program.arguments()
    kernel.interpret[program.grid](**expected)
    on_cpu, on_gpu = program.arguments(), program.arguments()
    kernel[program.grid](**on_cpu)
    kernel.simulate[program.grid](**on_gpu, **program.options)
    for where, found in (("CPU", on_cpu), ("GPU", on_gpu)):
        said = f"seed {seed}, {where}: {program}"
        np.testing.assert_array_equal(found["out"], expected["out"], said)


@pytest.mark.parametrize("first", range(0, 40, 5))
def test_random_dequantized_products_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 5):
        check(seed, tmp_path)


def test_they_copy_scales_and_read_operands_where_they_lie(tmp_path: Path) -> None:
    texts = [lowered(seed, tmp_path) for seed in range(40)]
    assert sum("cp.async" in text for text in texts) >= 20
    # Copies that some threads leave to others, words permuted, and matrices read for `mma`.
    for said in ("@$2 cp.async", "llvm.nvvm.prmt", "ldmatrix"):
        assert sum(said in text for text in texts) >= 8, said


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_many_random_dequantized_products_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        check(seed, tmp_path)


def test_a_seed_gives_one_program() -> None:
    assert generate_dequantized(5) == generate_dequantized(5) != generate_dequantized(6)
