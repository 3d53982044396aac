"""Persistent programs: the same arrays as of one program a tile, and who stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.persistent_kernels import blocks, cube, run_on, scheduled_for
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_tiles
from tilewright.frontend.devices import DevicePlacement
from tilewright.interp.evaluate import run_kernel
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ir.text import print_module
from tilewright.ops.function import find_kernel
from tilewright.ops.program.persistence import most_programs
from tilewright.ops.roles import find_roles
from tilewright.passes.persist import persist, reason_against, undo
from tilewright.support.errors import PlanRefused
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.target import load_target

SIZES: Mapping[str, int] = {"BM": 128, "BN": 64, "BK": 64, "GROUP": 2}


def halves(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-3, 4, shape).astype(np.float16)


@pytest.mark.parametrize("num_sms", [1, 2, 5, 40])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1000, 136, 200), (136, 64, 72)])
def test_tiles_run_one_after_the_other(
    rng: np.random.Generator, num_sms: int, groups: int, shape: tuple[int, int, int]
):
    m, n, k = shape
    a, b, c = halves(rng, m, k), halves(rng, k, n), np.full((m, n), 9, np.float16)
    sizes = {**SIZES, "BM": 192 if groups == 3 else 128}
    grid = (-(-m // sizes["BM"]) * -(-n // sizes["BN"]), 1, 1)
    ran = run_on(num_sms, blocks, grid, (a, b, c, m, n, k), num_consumer_groups=groups, **sizes)
    assert ran.metadata["most_programs"] == num_sms
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(c.dtype))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_warp_groups_does_not_matter(rng: np.random.Generator, seed: int):
    m, n, k = 640, 128, 128
    a, b, c = halves(rng, m, k), halves(rng, k, n), np.full((m, n), 9, np.float16)
    run_on(2, blocks, (10, 1, 1), (a, b, c, m, n, k), seed, num_consumer_groups=2, **SIZES)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(c.dtype))


IN_TURN = (
    "ring ab tiles load#0 load#1 slots 2 tma; "
    "loop for#1 load#0 @0.0 load#1 @0.0 dot#0 @1.0; persist static"
)


def cube_launch(rng: np.random.Generator, schedule: str | None, num_sms: int):
    """What a launch over three axes leaves, and how many programs it had at most."""
    block, depth = 64, 128
    a, b = halves(rng, 5 * block, depth), halves(rng, depth, block)
    c, counts = np.full((12 * block, block), 9, np.float16), np.zeros(12, np.int32)
    args = (a, b, c, counts, 5 * block, 12 * block, depth, block)
    ran = run_on(num_sms, cube, (3, 2, 2), args, schedule=schedule)
    return c, counts, ran.metadata["most_programs"]


@pytest.mark.parametrize("num_sms", [1, 4, 13])
def test_a_schedule_asks_for_it_and_all_axes_are_the_authors(num_sms: int):
    plain, counts, most = cube_launch(np.random.default_rng(1), None, num_sms)
    assert most == 0 and (counts == 1).all()
    found, counts, most = cube_launch(np.random.default_rng(1), IN_TURN, num_sms)
    assert most == num_sms and (counts == 1).all()
    np.testing.assert_array_equal(found, plain)


def tiles_of(kernel: JITFunction, args: Sequence[object], **options: object) -> ModuleOp:
    """A kernel at T0, behind the tile passes."""
    call = kernel.specialize_call(tuple(args), options)
    place, machine = DevicePlacement("nvidia"), named_machine("sm_90a")
    request = make_request(call.source, call.specialization, call.options, place, machine)
    return to_tiles(request, load_target("nvidia"))


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (3, 2, 2), (2, 5, 1), (1, 1, 9)])
@pytest.mark.parametrize("programs", [1, 3, 100])
def test_the_interpreter_finds_the_same(grid: tuple[int, int, int], programs: int):
    args = [np.zeros(200, np.int32), np.zeros(200, np.int32), 5]
    module = tiles_of(noted, args)
    run_kernel(module, args, grid)
    expected = [array.copy() for array in args[:2]]
    assert np.count_nonzero(expected[0]) == np.prod(grid)
    assert reason_against(find_kernel(module)) == ""
    persist(find_kernel(module), programs)
    for _ in range(2):
        args[:2] = [np.zeros(200, np.int32), np.zeros(200, np.int32)]
        run_kernel(module, args, grid)
        np.testing.assert_array_equal(args[0], expected[0])
        np.testing.assert_array_equal(args[1], expected[1])
        if most_programs(find_kernel(module)):
            undo(find_kernel(module))
    text = print_module(module)
    assert "tw.get_grid_extent" not in text and "scf.for" not in text


@tilewright.jit
def noted(numbers, sums, n):
    """Notes the place of each program, and adds one up."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(numbers + place, (x * 100 + y * 10 + z) * n + tl.num_programs(2))
    if x % 2 == 0:
        tl.atomic_add(sums + y, place)


@tilewright.jit
def counting(p, q, KIND: tl.constexpr):
    """Does something that a persistent program must not."""
    place = tl.program_id(0)
    if KIND == "atomic":
        place = tl.atomic_add(q, 1)
    if KIND == "volatile":
        place += tl.load(q, volatile=True)
    if KIND == "barrier":
        tl.debug_barrier()
    if KIND == "while":
        while tl.load(q) < place:
            place -= 1
    if KIND == "print":
        tl.device_print("place", place)
    if KIND == "assembly":
        place = tl.inline_asm_elementwise(
            "mov.u32 $0, %ctaid.x;", "=r,r", [place], dtype=tl.int32, is_pure=True, pack=1
        )
    if KIND == "tiles":
        for tile in range(place, 64, tl.num_programs(0)):
            tl.store(p + tile, tile)
    tl.store(p + place, place)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("atomic", "may order programs"),
        ("volatile", "may order programs"),
        ("barrier", "may order programs"),
        ("while", "may wait for another program"),
        ("print", "may order programs"),
        ("assembly", "asks where the program runs"),
        ("tiles", "loops over its tiles itself"),
    ],
)
def test_programs_that_may_wait_or_differ_stay_as_they_are(kind: str, reason: str):
    args = [np.zeros(64, np.int32), np.zeros(1, np.int32), kind]
    found = reason_against(find_kernel(tiles_of(counting, args)))
    assert reason in found and "test_persistence.py:" in found


def test_a_schedule_that_asks_for_what_cannot_be_is_refused():
    args = [np.zeros(64, np.int32), np.zeros(1, np.int32), "barrier"]
    with pytest.raises(PlanRefused, match=r"does not allow it: .*may order programs"):
        scheduled_for(counting, args, 4, {"schedule": "persist static"})


def test_programs_of_a_cluster_are_not_persistent():
    args = [np.zeros(64, np.int32), np.zeros(1, np.int32), "none"]
    with pytest.raises(PlanRefused, match="programs of a cluster"):
        options = {"schedule": "persist static", "cluster_dims": (2, 1, 1)}
        scheduled_for(counting, args, 4, options)


def product_args(rng: np.random.Generator) -> tuple[object, ...]:
    a, b = halves(rng, 256, 64), halves(rng, 64, 128)
    return a, b, np.zeros((256, 128), np.float16), 256, 128, 64


def test_the_text_of_a_schedule_says_it_and_is_taken_again(rng: np.random.Generator):
    args = product_args(rng)
    options: dict[str, object] = {**SIZES, "num_consumer_groups": 2}
    first, text, _ = scheduled_for(blocks, args, 4, options)
    schedule = schedule_of(find_kernel(first.module))
    assert schedule is not None and schedule.persist == "static"
    again = scheduled_for(blocks, args, 4, {**SIZES, "schedule": str(schedule)})
    assert again[1] == text


def test_a_kernel_without_roles_has_a_program_a_tile(rng: np.random.Generator):
    """Roles that cannot be formed leave the grid as it was."""
    options: dict[str, object] = {**SIZES, "BM": 64, "num_consumer_groups": 3}
    ran = scheduled_for(blocks, product_args(rng), 4, options)[0]
    assert find_roles(find_kernel(ran.module)) is None
    assert ran.metadata["most_programs"] == 0
    assert any("not split into roles" in remark for remark in ran.remarks)
