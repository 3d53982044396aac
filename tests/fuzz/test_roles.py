"""Random programs of products: as roles they leave the bits that they leave as one program."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.corpus.case import Case
from tests.corpus.run import run_module, tile_module
from tests.corpus.threads import gpu_request, run_threads
from tests.fuzz.loading import module_at
from tests.fuzz.role_programs import generate_roles, write_program
from tilewright.compiler.pipeline import schedule_pipeline
from tilewright.ir.schedule import Channel, Epilogue, Role, Schedule
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.program.persistence import cluster_of
from tilewright.schedule.partition.form_roles import sites_of
from tilewright.schedule.partition.lives import require_one_at_a_time
from tilewright.schedule.partition.refusal import Refused
from tilewright.support.dataclass import replace
from tilewright.support.errors import PlanRefused
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.partition.decide import DecideRoles
from tilewright.targets.nvidia.partition.form import FormRoles, partition_remarks
from tilewright.targets.target import load_target

CHUNK = 10


def load_case(
    seed: int,
    folder: Path,
    *,
    over_tiles: bool = False,
    gathers: bool = False,
    copies: bool = False,
) -> Case:
    """The case of a seed's program."""
    program = generate_roles(seed, over_tiles=over_tiles, gathers=gathers, copies=copies)
    path = write_program(program, folder)
    return program.case(module_at(path).kernel)


def schedule_for(kernel: FuncOp, rng: random.Random) -> Schedule:
    """Roles at random: the compiler's own rings, or a ring for each load, and any slots."""
    replicas = rng.choice((1, 2))
    own = DecideRoles(groups=replicas, slots=rng.randint(1, 3)).schedule(kernel)
    if rng.random() < 0.5:
        return own
    tiles = [tile for channel in own.channels for tile in channel.tiles]
    kept = [tile for tile in tiles if rng.random() < 0.97] or tiles
    media = {tile: channel.medium for channel in own.channels for tile in channel.tiles}
    rings = tuple(
        Channel(f"r{number}", (tile,), rng.randint(1, 3), media[tile])
        for number, tile in enumerate(kept)
    )
    math = Role("math", "math", 4, replicas, 232, "m" if replicas > 1 else "")
    return Schedule((Role("load", "load", registers=40), math), rings)


def schedule_of_tiles(kernel: FuncOp, rng: random.Random) -> Schedule:
    """Replicas that take tiles in turn or share them, which release late and store in chunks."""
    replicas = rng.choice((2, 3))
    own = DecideRoles(groups=2, slots=rng.randint(2, 4)).schedule(kernel)
    split = rng.choice(("tiles", "tiles", "m")) if replicas == 2 else "tiles"
    roles = own.roles[0], Role("math", "math", 4, replicas, 0, split)
    release = rng.choice(("wait", "late"))
    rings = tuple(
        replace(ring, release=release if ring.slots > 1 else "wait") for ring in own.channels
    )
    epilogue = Epilogue("tma", rng.choice((16, 32)), rng.randint(1, 3))
    return Schedule((replace(roles[0], registers=0), roles[1]), rings, epilogue=epilogue)


def schedule_of_one_memory(kernel: FuncOp, rng: random.Random) -> Schedule:
    """Roles whose rings lie in the memory of others, wherever that is proved to be right."""
    schedule = schedule_for(kernel, rng)
    for number in range(1, len(schedule.channels)):
        owners = [ring for ring in schedule.channels[:number] if not ring.shares]
        for owner in rng.sample(owners, len(owners)):
            rings = list(schedule.channels)
            rings[number] = replace(rings[number], shares=owner.name)
            shared = replace(schedule, channels=tuple(rings))
            if _is_proved(kernel, shared):
                schedule = shared
                break
    return schedule


def _is_proved(kernel: FuncOp, schedule: Schedule) -> bool:
    try:
        require_one_at_a_time(schedule, sites_of(kernel, schedule))
    except Refused:
        return False
    return True


def shares_memory(schedule: Schedule) -> bool:
    """Whether a ring lies in the memory of another one."""
    return any(ring.shares for ring in schedule.channels)


def schedule_of_clusters(kernel: FuncOp, rng: random.Random) -> Schedule:
    """Replicas that share rows, in programs that load for each other."""
    own = DecideRoles(groups=2, slots=rng.randint(1, 4)).schedule(kernel)
    roles = replace(own.roles[0], registers=0), Role("math", "math", 4, 2, 0, "m")
    rings = tuple(replace(ring, release="wait") for ring in own.channels)
    epilogue = Epilogue("tma", rng.choice((16, 32)), rng.randint(1, 3))
    return Schedule(roles, rings, epilogue=epilogue, cluster=2)


def require_agreement(
    seed: int,
    folder: Path,
    *,
    to_threads: bool = False,
    over_tiles: bool = False,
    gathers: bool = False,
    programs: int = 0,
    one_memory: bool = False,
    copies: bool = False,
) -> bool:
    """Run a program at T0 and as roles; whether it became roles at all.

    With `one_memory` only where a ring lies in the memory of another one.

    Rings that do not fit shared memory are refused, for the schedule counts as an author's.

    With `programs` so many go over the tiles, in clusters.
    """
    case = load_case(seed, folder, over_tiles=over_tiles, gathers=gathers, copies=copies)
    if programs:
        case = replace(case, grid=(programs,))
    rng = random.Random(seed)
    module = tile_module(gpu_request(case))
    before = run_module(case, module, NVIDIA_INTERPRETATION)
    kernel = find_kernel(module)
    choose = schedule_of_tiles if over_tiles else schedule_for
    choose = schedule_of_clusters if programs else choose
    choose = schedule_of_one_memory if one_memory else choose
    annotate_schedule(kernel, choose(kernel, rng))
    given = schedule_of(kernel)
    assert given is not None
    if one_memory and not shares_memory(given):
        return False
    if not to_threads:
        FormRoles().apply(module)
    else:
        request = gpu_request(case)
        target = load_target(request.target)
        try:
            schedule_pipeline(target, request.machine, request.compile_options).apply(module)
        except PlanRefused as refusal:
            assert "of shared memory" in str(refusal), refusal
            return False
    after = run_module(case, module, NVIDIA_INTERPRETATION)
    found = [after]
    if to_threads:
        found.append(run_threads(case, lambda m: annotate_schedule(find_kernel(m), given)))
    for arrays in found:
        for name, array in before.items():
            np.testing.assert_array_equal(arrays[name], array, f"seed {seed}: {name} under {given}")
    is_clustered = cluster_of(kernel) > 1 or not (programs and to_threads)
    return is_clustered and not partition_remarks(kernel)


@pytest.mark.parametrize("first", range(0, 60, CHUNK))
def test_random_programs_of_roles_agree(first: int, tmp_path: Path) -> None:
    split = [require_agreement(seed, tmp_path) for seed in range(first, first + CHUNK)]
    assert sum(split) >= CHUNK // 2, "most programs should be split"


@pytest.mark.parametrize("first", range(1000, 1008, 4))
def test_random_programs_of_roles_agree_down_to_threads(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 4):
        require_agreement(seed, tmp_path, to_threads=True)


@pytest.mark.parametrize("first", range(4000, 4060, 60))
def test_random_programs_of_rings_with_one_memory_agree(first: int, tmp_path: Path) -> None:
    """About one program in ten has two rings that do not live at once."""
    seeds = range(first, first + 60)
    made = [
        require_agreement(
            seed, tmp_path, to_threads=True, over_tiles=seed % 2 == 0, one_memory=True
        )
        for seed in seeds
    ]
    assert sum(made) >= 2


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_random_programs_over_tiles_agree(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + 8)
    split = [require_agreement(seed, tmp_path, over_tiles=True) for seed in seeds]
    assert sum(split) >= 4, "most programs should be split"


def test_random_programs_over_tiles_agree_down_to_threads(tmp_path: Path) -> None:
    for seed in range(3000, 3004):
        require_agreement(seed, tmp_path, to_threads=True, over_tiles=True)


@pytest.mark.parametrize(("first", "programs"), [(3100, 2), (3106, 4)])
def test_random_programs_over_tiles_agree_in_clusters(
    first: int, programs: int, tmp_path: Path
) -> None:
    clustered = [
        require_agreement(seed, tmp_path, to_threads=True, over_tiles=True, programs=programs)
        for seed in range(first, first + 6)
    ]
    assert sum(clustered) >= 2, "some programs should load for each other"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(3200, 3300, 20))
def test_many_random_programs_over_tiles_agree_in_clusters(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 20):
        options = {"to_threads": True, "over_tiles": True}
        require_agreement(seed, tmp_path, **options, programs=2 + 2 * (seed % 3))


@pytest.mark.parametrize("first", range(7000, 7024, 8))
def test_random_programs_that_gather_tiles_agree(first: int, tmp_path: Path) -> None:
    split = [require_agreement(seed, tmp_path, gathers=True) for seed in range(first, first + 8)]
    assert sum(split) >= 4, "most programs should be split"


def test_random_programs_that_gather_tiles_agree_down_to_threads(tmp_path: Path) -> None:
    for seed in range(7100, 7106):
        require_agreement(seed, tmp_path, to_threads=True, gathers=True)


def test_tiles_that_are_shown_count_as_shared_memory(tmp_path: Path) -> None:
    """Where they do not fit the schedule is refused as such, not when memory is placed."""
    assert not require_agreement(7269, tmp_path, to_threads=True, gathers=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(7200, 7600, 50))
def test_many_random_programs_that_gather_tiles_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        require_agreement(seed, tmp_path, to_threads=seed % 5 == 0, gathers=True)


@pytest.mark.parametrize("seed", [6012, 6172])
def test_a_product_of_what_threads_write_is_not_released_late(seed: int, tmp_path: Path) -> None:
    """The next iteration wrote its operand while it was running."""
    assert require_agreement(seed, tmp_path, to_threads=True, over_tiles=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4000, 4600, 50))
def test_many_random_programs_over_tiles_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        require_agreement(seed, tmp_path, to_threads=seed % 5 == 0, over_tiles=True)


@pytest.mark.parametrize("seed", [5000, 5017])
def test_a_ring_in_a_while_inside_another_loop_counts_on(seed: int, tmp_path: Path) -> None:
    """What the inner loop starts its counters from decides nothing: it was taken to."""
    assert require_agreement(seed, tmp_path, to_threads=True)


def test_a_wait_behind_a_turn_does_not_pass_a_loop(tmp_path: Path) -> None:
    """It was put in front of a loop that goes through the same ring."""
    assert require_agreement(3120128, tmp_path, to_threads=True)


def test_a_slot_is_not_held_around_what_takes_the_next_one(tmp_path: Path) -> None:
    """A product ran on across a branch that goes through the same ring."""
    assert require_agreement(3300272, tmp_path, to_threads=True, over_tiles=True)


def test_a_ring_is_not_filled_around_what_fills_another(tmp_path: Path) -> None:
    """The role that computes waited for the whole fill, and took nothing in between: deadlock."""
    require_agreement(2345, tmp_path)


def test_who_shows_parts_of_tiles_does_not_fill_rings_of_one_memory(tmp_path: Path) -> None:
    """A role that reads both filled a ring of parts: it was asked to wait as one that loads."""
    assert require_agreement(81032, tmp_path, to_threads=True, gathers=True)


@pytest.mark.parametrize("first", range(8000, 8024, 8))
def test_random_programs_whose_threads_copy_agree(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + 8)
    options = {"to_threads": True, "copies": True}
    made = [require_agreement(seed, tmp_path, **options) for seed in seeds]
    assert sum(made) >= 3, "some programs should be split"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2000, 3000, 50))
def test_many_random_programs_of_roles_agree(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        require_agreement(seed, tmp_path, to_threads=seed % 10 == 0)


def test_a_seed_gives_one_program_of_roles() -> None:
    assert generate_roles(5) == generate_roles(5) != generate_roles(6)
