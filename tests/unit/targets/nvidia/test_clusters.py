"""Two programs that load blocks for each other: their bits, when they do, and why they do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

import tilewright
import tilewright.language as tl
from tests.corpus.partitioned import persistent
from tests.unit.targets.nvidia.persistent_kernels import TARGET, blocks, run_on, scheduled_for
from tilewright import JITFunction
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_tiles
from tilewright.frontend.devices import DevicePlacement
from tilewright.ir.types import i1, i64
from tilewright.ops.control_flow import ForOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.function import find_kernel
from tilewright.ops.program.persistence import cluster_of, set_cluster
from tilewright.ops.rings import RingReleaseOp
from tilewright.ops.roles import ClusterWaitOp, find_roles
from tilewright.passes.tile_builder import TileBuilder
from tilewright.runtime.grid import persistent_grid
from tilewright.schedule.protocol.check import check_protocol
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.errors import ProtocolBroken
from tilewright.targets.nvidia.enumerate_schedules import enumerate_schedules
from tilewright.targets.nvidia.errors import LaunchRefused
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.kernel_shape import launch_shape
from tilewright.targets.nvidia.tma_ops import TmaFillOp
from tilewright.targets.target import Scheduled

ROLES = (
    "roles load regs 40 | math x2 regs 232 split m; ring ab tiles load#0 load#1 slots {slots}; "
    "epilogue tma columns 64 buffers 2; {rest}cluster 2"
)
STATIC = ROLES.format(slots=3, rest="persist static; ")
SHARED = "2 programs are a cluster"


def halves(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-3, 4, shape).astype(np.float16)


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m + n + k)
    return halves(rng, m, k), halves(rng, k, n), np.full((m, n), np.nan, np.float16)


def require_product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize(
    ("m", "n", "k", "group", "num_sms"),
    [
        (640, 392, 200, 3, 2),  # 5 × 4 tiles: groups of odd height, whose pairs part
        (640, 136, 72, 8, 5),  # an odd number of SMs
        (392, 264, 136, 1, 4),  # a group of one row: neighbours share A
        (128, 128, 64, 2, 4),  # one tile, which both programs do
        (136, 264, 17 * 8, 2, 6),
    ],
)
def test_programs_of_a_cluster_leave_the_bits_of_the_product(
    m: int, n: int, k: int, group: int, num_sms: int, seed: int | None
) -> None:
    a, b, c = operands(m, n, k)
    sizes = {"BM": 128, "BN": 128, "BK": 64, "GROUP": group}
    grid = (-(-m // 128) * -(-n // 128), 1, 1)
    made = run_on(num_sms, blocks, grid, (a, b, c, m, n, k), seed, **sizes, schedule=STATIC)
    require_product(a, b, c)
    assert cluster_of(find_kernel(made.module)) == 2
    assert launch_shape(made.metadata).cluster == (2, 1, 1)
    assert any(SHARED in remark for remark in made.remarks)


@pytest.mark.parametrize("num_programs", [2, 4, 6])
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_programs_that_go_over_tiles_themselves(slots: int, num_programs: int) -> None:
    """With more programs than tiles, as many, and several rounds; and launched in clusters."""
    a, b, c = operands(392, 200, 136)
    text = ROLES.format(slots=slots, rest="")
    sizes = {"M": 128, "N": 128, "K": 64, "GROUP": 2, "schedule": text}
    made = run_on(132, persistent, (num_programs, 1, 1), (a, b, c, 392, 200, 136), **sizes)
    require_product(a, b, c)
    assert cluster_of(find_kernel(made.module)) == 2


def test_a_launch_in_clusters_asks_for_it() -> None:
    a, b, c = operands(264, 136, 72)
    sizes = {"M": 128, "N": 128, "K": 64, "GROUP": 2}
    options = {**sizes, "num_consumer_groups": 2, "cluster_dims": (2, 1, 1)}
    scheduled, _, _ = scheduled_for(persistent, (a, b, c, 264, 136, 72), 132, options)
    # Tiles of 128 x 128 are taken in turn where nobody says else: that is told, and stays.
    assert any("does not begin with the program's number" in told for told in scheduled.remarks)
    options["N"] = 256
    scheduled, _, _ = scheduled_for(persistent, (a, b, c, 264, 136, 72), 132, options)
    assert any(SHARED in remark for remark in scheduled.remarks)


def test_the_simulator_refuses_a_grid_that_its_clusters_do_not_divide() -> None:
    x, out = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    doubled.simulate[(2,)](x, out, 32, cluster_dims=(2, 1, 1))
    np.testing.assert_array_equal(out, np.where(np.arange(96) < 64, 2 * x, 0))
    with pytest.raises(LaunchRefused, match=r"in clusters of \(2, 1, 1\)") as refused:
        doubled.simulate[(3,)](x, out, 32, cluster_dims=(2, 1, 1))
    assert refused.value.launch is not None
    assert refused.value.launch.file == __file__


def test_clusters_start_whole_and_as_many_as_there_are_tiles() -> None:
    assert persistent_grid((5, 1, 1), 132, 2) == (10, 1, 1)
    assert persistent_grid((100, 7, 1), 132, 2) == (132, 1, 1)
    assert persistent_grid((100, 7, 1), 131, 2) == (130, 1, 1)
    assert persistent_grid((100, 7, 1), 131) == (131, 1, 1)


@tilewright.jit
def doubled(x_ptr, out_ptr, SIZE: tl.constexpr):
    """Blocks of numbers, each twice as large."""
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))


# --- where nobody says it -----------------------------------------------------------------------


@tilewright.jit
def by_pointers(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A product by pointers with masks, tiles in groups of rows."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    i = (first + pid % (GROUP * columns) % height) * BM + tl.arange(0, BM)
    j = pid % (GROUP * columns) // height * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    a = a_ptr + (i % M)[:, None] * stride_a + steps[None, :]
    b = b_ptr + steps[:, None] * stride_b + (j % N)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=steps[None, :] < K - k * BK, other=0.0)
        acc = tl.dot(x, tl.load(b, mask=steps[:, None] < K - k * BK, other=0.0), acc)
        a += BK
        b += BK * stride_b
    mask = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c_ptr + i[:, None] * stride_c + j[None, :], acc.to(tl.float16), mask=mask)


WIDE = {"BM": 128, "BN": 256, "BK": 64, "GROUP": 2}


@pytest.mark.parametrize(("n", "k", "is_shared"), [(264, 136, True), (264, 128, False),
                                                   (256, 136, False)])  # fmt: skip
def test_rows_across_lines_are_loaded_in_clusters(n: int, k: int, is_shared: bool) -> None:
    """No stride of rows is a multiple of 16 elements: only then no row begins where a line does."""
    a, b, c = operands(392, n, k)
    args = (a, b, c, 392, n, k, k, n, n)
    made = run_on(132, by_pointers, (-(-392 // 128) * -(-n // 256), 1, 1), args, **WIDE)
    require_product(a, b, c)
    assert any(SHARED in remark for remark in made.remarks) == is_shared


# --- why programs stay for themselves -----------------------------------------------------------


@tilewright.jit
def counted(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Where a tile is stored follows from a count of its own."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    stored = tl.program_id(0)
    for tile in range(tl.program_id(0), tl.cdiv(m, M), tl.num_programs(0)):
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            acc = tl.dot(left.load([tile * M, start]), right.load([start, 0]), acc)
        out.store([stored * M, 0], acc.to(tl.float16))
        stored += tl.minimum(tl.num_programs(0), 1 << 20)


@tilewright.jit
def triangular(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """How far a product goes follows from the tile."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    for tile in range(tl.program_id(0), tl.cdiv(m, M), tl.num_programs(0)):
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, tile * M, K):
            acc = tl.dot(left.load([tile * M, start]), right.load([start, 0]), acc)
        out.store([tile * M, 0], acc.to(tl.float16))


@tilewright.jit
def under_a_branch(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Some tiles have a product and some have none."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    for tile in range(tl.program_id(0), tl.cdiv(m, M), tl.num_programs(0)):
        acc = tl.zeros((M, N), tl.float32)
        if tile % 2 == 0:
            for start in range(0, k, K):
                acc = tl.dot(left.load([tile * M, start]), right.load([start, 0]), acc)
        out.store([tile * M, 0], acc.to(tl.float16))


@tilewright.jit
def by_halves(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The loop over tiles does not begin with the program's number."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    for half in range(tl.program_id(0) * 2, tl.cdiv(m, M) * 2, tl.num_programs(0) * 2):
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            acc = tl.dot(left.load([half // 2 * M, start]), right.load([start, 0]), acc)
        out.store([half // 2 * M, 0], acc.to(tl.float16))


REFUSED = {
    "counted": (counted, "a tile needs what the one before it has computed"),
    "triangular": (triangular, "how often a tile fills a ring follows from the tile"),
    "under_a_branch": (under_a_branch, "how often a tile fills a ring may differ"),
    "by_halves": (by_halves, "does not begin with the program's number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_shared_is_told_and_stays_right(name: str) -> None:
    kernel, reason = REFUSED[name]
    a, b, c = operands(384, 64, 128)
    sizes = {"M": 128, "N": 64, "K": 64, "schedule": ROLES.format(slots=2, rest="")}
    made = run_on(132, kernel, (2, 1, 1), (a, b, c, 384, 64, 128), **sizes)
    assert cluster_of(find_kernel(made.module)) == 1
    assert made.metadata["cluster"] == 1
    told = [remark for remark in made.remarks if "programs do not load for each other" in remark]
    assert len(told) == 1 and reason in told[0] and "test_clusters.py:" in told[0]
    if name in ("counted", "by_halves"):
        require_product(a, b, c)


def test_one_group_does_not_share() -> None:
    a, b, c = operands(264, 136, 72)
    text = "roles load | math; ring ab tiles load#0 load#1 slots 2; cluster 2"
    sizes = {"M": 128, "N": 64, "K": 64, "GROUP": 2, "schedule": text}
    made = run_on(132, persistent, (2, 1, 1), (a, b, c, 264, 136, 72), **sizes)
    require_product(a, b, c)
    assert any("one group computes" in remark for remark in made.remarks)


# --- the protocol of two programs ---------------------------------------------------------------


def placed(kernel: JITFunction = persistent) -> Scheduled:
    """A product at T2 whose programs share blocks."""
    a, b, c = operands(640, 392, 200)
    sizes = {"M": 128, "N": 128, "K": 64, "GROUP": 2, "schedule": ROLES.format(slots=2, rest="")}
    return scheduled_for(kernel, (a, b, c, 640, 392, 200), 132, sizes)[0]


LAUNCHES = [
    Launch({3: m, 4: n, 5: k}, (program, 0, 0), (4, 1, 1))
    for m, n, k in ((640, 392, 200), (128, 128, 0), (392, 128, 64), (640, 640, 640))
    for program in (0, 3)
]


def test_two_programs_keep_to_their_protocol() -> None:
    kernel = find_kernel(placed().module)
    assert all(run_protocol(kernel, launch) > 0 for launch in LAUNCHES[:2])
    assert max(run_protocol(kernel, launch) for launch in LAUNCHES) > 1000


def _one_of_them(made: Scheduled) -> None:
    """Only the program of rank 0 takes blocks for shared."""
    for fill in made.module.walk():
        if isinstance(fill, TmaFillOp) and fill.shared is not None:
            loop = fill.parent_op()
            assert isinstance(loop, ForOp)
            outer = loop.parent_op()
            assert isinstance(outer, ForOp) and isinstance(outer.lb.owner, Operation)
            rank, make = outer.lb.owner.operands[1], TileBuilder(fill)
            equal: dict[str, Attribute] = {"predicate": IntegerAttr(0, i64)}
            is_first = make.emit(CmpIOp, (rank, make.integer(0)), i1, equal)
            fill.operands[len(fill.operands) - 1] = is_first


def _more_rounds(made: Scheduled) -> None:
    """The second program goes over its own tiles, and the first one over both."""
    roles = find_roles(find_kernel(made.module))
    assert roles is not None
    for op in list(roles.walk()):
        if isinstance(op, ForOp) and isinstance(op.parent_op(), type(roles)):
            make = TileBuilder(op)
            assert isinstance(op.lb.owner, Operation)
            op.operands[0] = make.binary("addi", op.lb, op.lb.owner.operands[1])


def _released_twice(made: Scheduled) -> None:
    release = next(op for op in made.module.walk() if isinstance(op, RingReleaseOp))
    assert release.parent is not None
    release.parent.insert_op_after(release.clone(), release)


@pytest.mark.parametrize("change", [_one_of_them, _more_rounds, _released_twice])
def test_a_broken_protocol_of_two_programs_is_found(change: Callable[[Scheduled], None]) -> None:
    made = placed()
    change(made)
    kernel = find_kernel(made.module)
    with pytest.raises(ProtocolBroken, match=r"ring ab|waits"):
        for launch in LAUNCHES:
            run_protocol(kernel, launch)


def _leaves_early(made: Scheduled) -> None:
    wait = next(op for op in made.module.walk() if isinstance(op, ClusterWaitOp))
    wait.detach()
    wait.erase()


def _starts_alone(made: Scheduled) -> None:
    set_cluster(find_kernel(made.module), 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_leaves_early, "role math: ends while another program may still write to its slots"),
        (_starts_alone, "ring ab: 2 programs share it, and a launch starts clusters of 1"),
    ],
)
def test_programs_that_would_not_meet_are_refused(
    change: Callable[[Scheduled], None], message: str
) -> None:
    made = placed()
    check_protocol(find_kernel(made.module), named_machine("sm_90a"))
    change(made)
    with pytest.raises(ProtocolBroken, match=message):
        check_protocol(find_kernel(made.module), named_machine("sm_90a"))


def test_the_tuner_tries_neighbours_that_share() -> None:
    a, b, c = operands(264, 136, 72)
    sizes = {"M": 128, "N": 256, "K": 64, "GROUP": 2}
    call = persistent.specialize_call((a, b, c, 264, 136, 72), sizes)
    place, machine = DevicePlacement("nvidia"), named_machine("sm_90a")
    request = make_request(call.source, call.specialization, call.options, place, machine)
    found = enumerate_schedules(to_tiles(request, TARGET), machine, request.compile_options)
    texts = [str(options.get("schedule", "")) for options in found]
    clustered = [text for text in texts if text.endswith("; cluster 2")]
    assert clustered and all("math x2" in text and "split m" in text for text in clustered)
    assert {text.removesuffix("; cluster 2") for text in clustered} <= set(texts)
