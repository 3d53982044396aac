"""Replicas that take whole tiles in turn: the bits of one program, at every level."""

from __future__ import annotations

import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import check
from tests.corpus.forming import formed, run_formed, run_tiles
from tests.corpus.partitioned import AB, GEMMS, Partitioned, gemm_case, persistent, two_outputs_case
from tests.corpus.run import run_module
from tests.corpus.threads import lower_for_gpu, run_plain_threads, run_threads
from tests.equivalence.test_rings import lowered, over, require_same
from tests.roles.test_formed_protocols import launches
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.channels import SkipOp
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingReleaseOp
from tilewright.schedule.protocol.run import run_protocol
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION

LATE = AB + " tma release late"
CHUNKS = "; epilogue tma columns 32 buffers 2"


@tilewright.jit
def two_products(
    a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    """Two loops and a single step a tile, all of which fill one ring."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    columns = tl.cdiv(n, N)
    for tile in range(tl.program_id(0), tl.cdiv(m, M) * columns, tl.num_programs(0)):
        row, column = tile // columns * M, tile % columns * N
        acc = tl.dot(left.load([row, 0]), right.load([0, column]))
        for start in range(K, k - K, K):
            acc = tl.dot(left.load([row, start]), right.load([start, column]), acc)
        for start in range(max(K, (k - 1) // K * K), k, K):
            acc = tl.dot(left.load([row, start]), right.load([start, column]), acc)
        out.store([row, column], acc.to(tl.float16))


def case_of(kernel: object, m: int, n: int, k: int, ring: str = LATE) -> Partitioned:
    case = gemm_case(kernel, m, n, k, f"{kernel.__name__}-{m}-{n}-{k}", GROUP=2)  # type: ignore[attr-defined]
    if case.kernel is not persistent:
        case = type(case)(case.name, case.kernel, (3,), case.inputs, case.reference)
    return Partitioned(case, ring)


THREE = AB.replace("load#1", "load#1 load#2 load#3 load#4 load#5") + " tma release late"
TILES = [
    case_of(persistent, 300, 200, 136),
    case_of(persistent, 128, 64, 192),  # one tile: other replicas have none
    case_of(persistent, 700, 200, 64),
    case_of(persistent, 520, 72, 520),
    Partitioned(two_outputs_case(500, 200, 72, 3), LATE),
    case_of(two_products, 300, 200, 64, THREE),
    case_of(two_products, 300, 200, 328, THREE),
]


def text_of(case: Partitioned, replicas: int, slots: int = 3) -> str:
    return case.text(replicas, "tiles", slots) + CHUNKS


@over(TILES)
@pytest.mark.parametrize("replicas", [2, 3])
def test_tiles_in_turn_are_the_tiles_of_one_program(case: Partitioned, replicas: int) -> None:
    expected = run_tiles(case.case)
    check(case.case, expected, case.case.expected(), "T0 against NumPy")
    require_same(run_formed(case.case, text_of(case, replicas)), expected)
    for level in ("T1", "T2"):
        for slots in (2, 3):
            module = lowered(case, text_of(case, replicas, slots), level)
            require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), expected)


@over(TILES)
@pytest.mark.parametrize(("replicas", "slots"), [(2, 3), (3, 2)])
def test_threads_take_tiles_in_turn(case: Partitioned, replicas: int, slots: int) -> None:
    schedule = parse_schedule(text_of(case, replicas, slots))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, run_plain_threads(case.case))


@over(TILES)
@pytest.mark.parametrize("release", ["wait", "late"])
def test_tiles_in_turn_keep_to_their_protocol(case: Partitioned, release: str) -> None:
    for slots in (2, 3, 4):
        text = text_of(case, 2, slots).replace("release late", f"release {release}")
        kernel = find_kernel(lowered(case, text, "T2"))
        events = [run_protocol(kernel, launch) for launch in launches(kernel, case.case.values())]
        assert max(events) > 0
        conditional = [op for op in kernel.walk() if isinstance(op, RingReleaseOp) and op.condition]
        assert bool(conditional) == (release == "late")


@over(TILES[:1])
def test_rows_in_shared_tiles_are_released_late_as_well(case: Partitioned) -> None:
    """Two groups on one tile: each has a product running while the next one starts."""
    expected = run_tiles(case.case)
    module = lowered(case, case.text(2) + CHUNKS, "T2")
    require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), expected)
    schedule = parse_schedule(case.text(2) + CHUNKS)
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, expected)


@over([GEMMS[0], GEMMS[6]])
def test_without_a_loop_over_tiles_replicas_share_rows(case: Partitioned) -> None:
    module, remarks = formed(case.case, case.text(2, "tiles", 2))
    assert not any(isinstance(op, SkipOp) for op in module.walk())
    schedule = schedule_of(find_kernel(module))
    assert not remarks and schedule is not None
    assert [role.split for role in schedule.roles] == ["", "m"]
    assert "share rows of tiles: replicas take whole tiles of one loop" in schedule.reasons[-1]
    require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), run_tiles(case.case))


def test_an_option_makes_small_tiles_go_in_turn() -> None:
    case = TILES[0].case
    schedule = lower_for_gpu(case, None, num_consumer_groups=2).scheduled
    assert "math x2 (4 warps, 232 registers)" in schedule.remarks[0]
    assert any(op.name == "ttg.turn_wait" for op in schedule.module.walk())
    require_same(run_threads(case, None, num_consumer_groups=2), run_threads(case))
