"""Random products through descriptors of all dims of a tensor: launches have the text's bits.

The interpreter, the simulated threads of a GPU and the CPU are held to each other.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.loading import module_at
from tests.fuzz.single_dims import generate_single_dims
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_tiles
from tilewright.frontend.devices import DevicePlacement
from tilewright.ops.descriptors.ir import DescriptorLoadOp, DescriptorStoreOp
from tilewright.ops.function import find_kernel
from tilewright.ops.shape.ir import ReshapeOp
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.target import load_target


def load(seed: int, folder: Path) -> JITFunction:
    path = folder / f"single_dims_{seed}.py"
    path.write_text(generate_single_dims(seed).text)
    return module_at(path).kernel


def check(seed: int, folder: Path) -> None:
    """Hold the threads of a launch, and a CPU's where its tiles have sizes for one, to the text."""
    program, kernel = generate_single_dims(seed), load(seed, folder)
    expected, found, native = (program.arguments() for _ in range(3))
    kernel.interpret[program.grid](**expected, **program.options)
    order = seed if seed % 2 else None
    kernel.simulate[program.grid](**found, **program.options, seed=order)
    np.testing.assert_array_equal(found["out"], expected["out"], f"seed {seed}: {program}")
    if program.tile["M"] != 192:
        kernel[program.grid](**native)
        np.testing.assert_array_equal(native["out"], expected["out"], f"seed {seed}: {program}")


def counts(seed: int, folder: Path) -> tuple[int, int]:
    """The accesses of a kernel through tensor maps, and the reshapes that are left of it."""
    program = generate_single_dims(seed)
    given = {**program.arguments(), **program.options}
    call = load(seed, folder).specialize_call((), given)
    machine, place = named_machine("sm_90a"), DevicePlacement("nvidia")
    request = make_request(call.source, call.specialization, call.options, place, machine)
    ops = list(find_kernel(to_tiles(request, load_target("nvidia"))).walk())
    kinds = (DescriptorLoadOp, DescriptorStoreOp)
    return sum(isinstance(op, kinds) for op in ops), sum(isinstance(op, ReshapeOp) for op in ops)


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_random_blocks_of_single_dims_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 8):
        check(seed, tmp_path)


def test_most_are_loaded_and_stored_without_a_reshape(tmp_path: Path) -> None:
    found = [counts(seed, tmp_path) for seed in range(40)]
    assert sum(pair == (3, 0) for pair in found) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_more_random_blocks_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        check(seed, tmp_path)
