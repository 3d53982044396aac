"""Loads that the copy engine makes bring what the plain ones bring, in launches that allow it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.corpus.case import Array, Case
from tests.corpus.run import guarded, run_module, tile_module
from tests.corpus.threads import gpu_request, run_threads
from tests.fuzz.boxes import BoxProgram, Launch, programs
from tests.fuzz.loading import module_at
from tilewright.frontend.passing import runtime_values
from tilewright.ops.function import find_kernel
from tilewright.runtime.launch_numbers import LaunchConditions, words_of
from tilewright.support.errors import KernelFault
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.tma.launch_conditions import guards_of
from tilewright.targets.nvidia.tma_ops import TensorMapOp

CHUNK = 25
LAUNCHES = 6
EAGER, PLAIN = {"bulk_access": "always"}, {"bulk_access": "never"}


def module_of(seeds: range, folder: Path) -> tuple[ModuleType, list[BoxProgram]]:
    text, made = programs(seeds)
    path = folder / f"boxes_{seeds.start}.py"
    path.write_text(text)
    return module_at(path), made


def case_of(module: ModuleType, program: BoxProgram, launch: Launch, number: int) -> Case:
    return Case(
        f"{program.name}_{number}",
        getattr(module, program.name),
        launch.grid,
        lambda rng: launch.values(rng, program.tile),
        lambda _: None,
    )


def is_made_for(case: Case, options: dict[str, object]) -> bool:
    """Whether the kernel that is compiled for the engine takes this launch."""
    tiles = tile_module(gpu_request(case, **options))
    conditions = LaunchConditions(guards_of(find_kernel(tiles)))
    values = guarded(case.values()).values
    call = case.kernel.specialize_call((), values)
    words = words_of(runtime_values(call.specialization, call.arguments))
    grid = (*case.grid, 1, 1)[:3]
    return conditions.hold(words, (grid[0], grid[1], grid[2]))


def plain(case: Case) -> dict[str, Array] | None:
    """What the program leaves by plain loads; None where it leaves the array."""
    try:
        return run_module(case, tile_module(gpu_request(case, **PLAIN)), NVIDIA_INTERPRETATION)
    except KernelFault:
        return None


def examine(case: Case, found: Counter[str], *, to_threads: bool) -> None:
    tiles = tile_module(gpu_request(case, **EAGER))
    if not any(isinstance(op, TensorMapOp) for op in tiles.walk()):
        found["stays plain"] += 1
        return
    if not is_made_for(case, EAGER):
        found["refused by the launch"] += 1
        return
    before = plain(case)
    if before is None:
        found["out of bounds"] += 1
        return
    after = run_module(case, tiles, NVIDIA_INTERPRETATION)
    np.testing.assert_array_equal(after["out"], before["out"], case.name)
    found["by the engine"] += 1
    if to_threads:
        threads = run_threads(case, **EAGER)
        np.testing.assert_array_equal(threads["out"], before["out"], f"{case.name}: threads")


@pytest.mark.parametrize("first", range(0, 6 * CHUNK, CHUNK))
def test_loads_by_the_engine_bring_what_plain_ones_bring(first: int, tmp_path: Path) -> None:
    module, made = module_of(range(first, first + CHUNK), tmp_path)
    found: Counter[str] = Counter()
    for program in made:
        for number, launch in enumerate(program.launches(LAUNCHES)):
            case = case_of(module, program, launch, number)
            examine(case, found, to_threads=number == 0)
    assert found["by the engine"] >= 5 and found["refused by the launch"] >= 5, found
