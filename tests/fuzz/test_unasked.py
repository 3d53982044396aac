"""Random gathered products and attentions over pages: as they run unasked, the bits of one program.

Each is held to the interpreter, to one program with its pipeline, and to one without.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.loading import module_at
from tests.fuzz.unasked_attentions import UnaskedAttention, generate_attention
from tests.fuzz.unasked_products import UnaskedProduct, generate_product
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.stages import schedule_of
from tilewright.frontend.devices import DevicePlacement
from tilewright.targets.nvidia.host import named_machine
from tilewright.testing import assert_close

Unasked = UnaskedAttention | UnaskedProduct
LAUNCHES = ({}, {"num_warps": 8}, {"num_stages": 3}, {"num_warps": 8, "num_stages": 4})
"""What launches say that ask for no roles."""
SYNCHRONOUS = ({"num_consumer_groups": 0}, {"num_stages": 1})


def load(program: Unasked, folder: Path) -> JITFunction:
    """The kernel of a program, from a file, so that its source can be found."""
    path = folder / f"{type(program).__name__}_{program.seed}.py"
    path.write_text(program.text)
    return module_at(path).kernel


def simulated(
    kernel: JITFunction, program: Unasked, options: dict[str, int], order: int | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """What a launch stores, and the remarks of the kernel that ran."""
    given = program.arguments()
    simulation = kernel.simulate[program.grid](**given, **options, seed=order)
    return np.asarray(given["out"]), simulation.remarks


def check(seed: int, folder: Path, generate: Callable[[int], Unasked]) -> str:
    """Hold the threads of a launch to the interpreter; how it ran."""
    program = generate(seed)
    kernel, expected = load(program, folder), program.arguments()
    kernel.interpret[program.grid](**expected)
    launch = LAUNCHES[seed // 2 % len(LAUNCHES)]
    found, remarks = simulated(kernel, program, launch, seed if seed % 2 else None)
    said, way = f"seed {seed}: {launch}, {program}", ran_as(remarks)
    asked = [*SYNCHRONOUS, {"num_consumer_groups": 1 + seed % 2}]
    for options in asked if way == "one program" else SYNCHRONOUS:
        other, _ = simulated(kernel, program, {**launch, **options})
        np.testing.assert_array_equal(found, other, f"{said}: {options}")
    if not isinstance(program, UnaskedAttention) or program.is_whole:
        np.testing.assert_array_equal(found, expected["out"], said)
    else:
        assert_close(found, np.asarray(expected["out"]), 2e-2, 2e-2, said)
    return way


def ran_as(remarks: tuple[str, ...]) -> str:
    """Whether a kernel ran in roles, whose rings threads fill or not, or as one program."""
    text = "\n".join(remarks)
    if "runs as roles" not in text:
        return "one program"
    return "copied" if "filled by threads" in text else "roles"


def chosen(seed: int, folder: Path, generate: Callable[[int], Unasked]) -> str:
    """How a launch would run whose arguments are as the kernel wants them."""
    program = generate(seed)
    call = load(program, folder).specialize_call((), program.arguments())
    placement, machine = DevicePlacement("nvidia"), named_machine("sm_90a")
    request = make_request(call.source, call.specialization, call.options, placement, machine)
    return ran_as(schedule_of(request).remarks)


@pytest.mark.parametrize("generate", [generate_product, generate_attention])
def test_many_of_them_run_in_roles_whose_threads_copy(
    generate: Callable[[int], Unasked], tmp_path: Path
) -> None:
    ways = [chosen(seed, tmp_path, generate) for seed in range(20)]
    assert ways.count("copied") >= 8


@pytest.mark.parametrize("first", range(0, 4, 2))
def test_random_products_of_gathered_rows_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 2):
        check(seed, tmp_path, generate_product)


@pytest.mark.parametrize("first", range(0, 4, 2))
def test_random_attentions_over_pages_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 2):
        check(seed, tmp_path, generate_attention)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1200, 20))
@pytest.mark.parametrize("generate", [generate_product, generate_attention])
def test_many_of_them_agree(first: int, generate: Callable[[int], Unasked], tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        check(seed, tmp_path, generate)


def test_a_seed_gives_one_program() -> None:
    for generate in (generate_product, generate_attention):
        assert generate(5) == generate(5) != generate(6)
