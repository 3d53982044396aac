"""Products of a group in roles: descriptors that the program makes, and the order of its stores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.grouped_programs import Group, Shape, by_descriptors, stored_by_pointers
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_tiles
from tilewright.compiler.stages import schedule_of
from tilewright.frontend.devices import DevicePlacement
from tilewright.interp.evaluate import run_kernel
from tilewright.ir.op import Array
from tilewright.ops.channels import MeetOp
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingLandedOp, RingReleaseOp, RingSeekOp
from tilewright.ops.roles import find_roles
from tilewright.schedule.protocol.around import NUM_STEPS, launches_around
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.dataclass import replace
from tilewright.support.errors import KernelFault, ProtocolBroken
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.partition import stage_meets
from tilewright.targets.nvidia.tma_ops import LeaveMapSlotOp, MakeTensorMapOp, TmaFillOp, TmaStoreOp
from tilewright.targets.target import load_target

SHAPES = ((64, 64, 64), (130, 72, 40), (17, 64, 0), (64, 136, 96))
TILES = {"M": 128, "N": 64, "K": 32}
ROLES = {**TILES, "num_consumer_groups": 2}
MACHINE = named_machine("sm_90a")
NVIDIA = load_target("nvidia")


def requested(group: Group, programs: int, **options: int):
    call = by_descriptors.specialize_call(group.arguments(), {"P": programs, **ROLES, **options})
    placement = DevicePlacement("nvidia")
    return make_request(call.source, call.specialization, call.options, placement, MACHINE)


def module_at(request, stage: str):
    """The module behind a pass."""
    module = to_tiles(request, NVIDIA, None)
    for item in NVIDIA.schedule(request.machine, request.compile_options):
        item.apply(module)
        if item.name == stage:
            return module
    raise AssertionError(stage)


def simulate(group: Group, programs: int = 3, seed: int | None = None, **options: int) -> None:
    launch = by_descriptors.simulate[(programs,)]
    options = {**ROLES, **options}
    launch(*group.arguments(), P=programs, **options, reachable=group.arrays(), seed=seed)


def test_loads_and_stores_go_by_maps_that_each_role_makes(rng) -> None:
    request = requested(Group(rng, SHAPES), 3)
    kernel = find_kernel(module_at(request, "check-protocol"))
    roles = find_roles(kernel)
    assert roles is not None
    load, math = (list(body.walk()) for body in roles.bodies)
    kinds = (MakeTensorMapOp, TmaFillOp, TmaStoreOp)
    found = [[sum(isinstance(op, kind) for op in ops) for kind in kinds] for ops in (load, math)]
    assert found == [[2, 2, 0], [1, 0, 1]]
    assert [sum(isinstance(op, LeaveMapSlotOp) for op in ops) for ops in (load, math)] == [1, 1]
    remarks = "\n".join(schedule_of(request).remarks)
    assert "runs as roles: load (4 warps, 80 registers) | math x2 (4 warps, 208" in remarks


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("programs", [1, 5])
def test_threads_compute_a_group_in_roles(groups: int, programs: int, rng) -> None:
    group = Group(rng, SHAPES)
    rows = {1: 64, 2: 128, 3: 192}[groups]
    simulate(group, programs, seed=7, num_consumer_groups=groups, M=rows)
    group.check()


@pytest.mark.parametrize(
    "shapes",
    [
        ((300, 200, 136),),
        ((0, 64, 64), (64, 0, 64), (64, 64, 0)),
        tuple((8 + 40 * (i % 5), 64, 32 * (i % 4)) for i in range(16)),
        ((130, 72, 520),) * 2,
    ],
)
@pytest.mark.parametrize("interleaved", [False, True])
def test_groups_of_any_size(shapes: Sequence[Shape], interleaved: bool, rng) -> None:
    group = Group(rng, shapes, interleaved=interleaved)
    simulate(group, 2)
    group.check()


@pytest.mark.parametrize("stage", ["form-roles", "stage-channels", "check-protocol"])
def test_every_level_computes_the_same(stage: str, rng) -> None:
    group = Group(rng, SHAPES)
    module = module_at(requested(group, 3), stage)
    interpret(module, group.arguments(), group.arrays())
    group.check()


def interpret(module, arguments: tuple[object, ...], arrays: Sequence[Array]) -> None:
    run_kernel(module, arguments, (3,), rules=NVIDIA_INTERPRETATION, reachable=arrays)


class Chain(Group):
    """Each product is the left side of the next one, in the order of one program."""

    def __init__(self, rng: np.random.Generator, count: int) -> None:
        super().__init__(rng, ((128, 64, 64),) * count)
        self.a[1:] = self.c[:-1]
        self.b = [np.eye(64)[rng.permutation(64)].astype(np.float16) for _ in self.b]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_what_is_stored_is_loaded_by_the_next_product(seed: int | None, rng) -> None:
    chain = Chain(rng, 4)
    simulate(chain, 1, seed)
    chain.check()


@pytest.mark.parametrize("stage", ["form-roles", "stage-channels", "check-protocol"])
def test_every_level_keeps_the_order_of_stores(stage: str, rng) -> None:
    chain = Chain(rng, 3)
    module = module_at(requested(chain, 1), stage)
    run_kernel(
        module, chain.arguments(), (1,), rules=NVIDIA_INTERPRETATION, reachable=chain.arrays()
    )
    chain.check()


@pytest.mark.parametrize("seed", [None, 1])
def test_sizes_that_a_product_stores_are_those_of_the_next_one(seed: int | None, rng) -> None:
    """The first product writes columns and depth of the second one, which had none before."""
    group = Group(rng, ((8, 8, 8), (8, 8, 8)))
    *addresses, _, rows, count = group.arguments()
    memory = np.zeros(40, np.int32)
    memory[:6] = (8, 8, 8, 8, 0, 0)
    stored = memory[4:36].view(np.float16).reshape(8, 8)
    group.a[0].view(np.uint16)[:] = 0
    group.a[0].view(np.uint16)[0, [0, 2]] = 8
    group.b[0][:] = np.eye(8)
    addresses[2][0] = stored.ctypes.data
    launch = by_descriptors.simulate[(1,)]
    arguments = (*addresses, memory, rows, count)
    launch(*arguments, P=1, **ROLES, reachable=[*group.arrays(), stored], seed=seed)
    assert memory[4] == memory[5] == 8
    expected = group.a[1].astype(np.float64) @ group.b[1].astype(np.float64).T
    np.testing.assert_array_equal(group.c[1], expected.astype(np.float16))


def test_roles_that_do_not_meet_compute_something_else(rng, monkeypatch) -> None:
    def passes(roles, channel) -> None:
        for op in tuple(roles.walk()):
            if isinstance(op, MeetOp):
                op.detach()
                op.erase()
        channel.detach()
        channel.erase()

    monkeypatch.setattr("tilewright.targets.nvidia.partition.stage_channels.stage_meets", passes)
    chain = Chain(rng, 4)
    simulate(chain, 1)
    with pytest.raises(AssertionError):
        chain.check()


def test_a_map_that_is_made_while_copies_use_it_is_a_fault(rng, monkeypatch) -> None:
    real = stage_meets.keep_maps

    def hasty(roles) -> None:
        real(roles)
        for op in tuple(roles.walk()):
            if isinstance(op, RingLandedOp):
                op.detach()
                op.erase()

    monkeypatch.setattr("tilewright.targets.nvidia.partition.stage_channels.keep_maps", hasty)
    group = Group(rng, ((128, 64, 96),) * 4)
    with pytest.raises(ProtocolBroken, match="role load: makes a tensor map anew while its loads"):
        simulate(group, 1)
    monkeypatch.setattr("tilewright.targets.nvidia.schedule.check_maps", lambda kernel: None)
    with pytest.raises(KernelFault, match="is made anew by thread"):
        simulate(group, 1)


def test_the_protocol_holds_around_the_slots(rng) -> None:
    kernel = find_kernel(module_at(requested(Group(rng, SHAPES), 3), "check-protocol"))
    (count,) = (
        i for i, a in enumerate(kernel.body.block.args) if str(a.type) == "i32"
    )  # fmt: skip
    events = [
        run_protocol(kernel, Launch({count: groups}, (program, 0, 0), (3, 1, 1)), 20_000)
        for groups in (0, 1, 40, 100)
        for program in (0, 2)
    ]
    assert max(events) > 100


def test_a_meeting_that_one_role_misses_breaks_the_protocol(rng) -> None:
    kernel = find_kernel(module_at(requested(Chain(rng, 4), 1), "check-protocol"))
    roles = find_roles(kernel)
    assert roles is not None
    for op in tuple(roles.bodies[0].walk()):
        if isinstance(op, RingReleaseOp) and op.ring_of().ring_name.data == "meet":
            op.detach()
            op.erase()
    (count,) = (i for i, a in enumerate(kernel.body.block.args) if str(a.type) == "i32")
    with pytest.raises(ProtocolBroken, match="meet"):
        run_protocol(kernel, Launch({count: 100}, (0, 0, 0), (1, 1, 1)))


def test_the_protocol_runs_where_all_arrays_are_one(rng) -> None:
    """Roles meet wherever they compare; what the loader forgets of its place shows there alone."""
    kernel = find_kernel(module_at(requested(Group(rng, SHAPES), 3), "check-protocol"))
    assert {launch.overlaps for launch in launches_around(kernel)} == {False, True}
    (count,) = (i for i, a in enumerate(kernel.body.block.args) if str(a.type) == "i32")
    apart = Launch({count: 40})
    for launch in (apart, replace(apart, overlaps=True)):
        assert run_protocol(kernel, launch, NUM_STEPS) > 100
    roles = find_roles(kernel)
    assert roles is not None
    seeks = [op for op in roles.bodies[0].walk() if isinstance(op, RingSeekOp)]
    where_sizes_are_read = seeks[0]
    assert where_sizes_are_read.ring_of().ring_name.data == "meet"
    for before, after in zip(where_sizes_are_read.before, seeks[0].after, strict=True):
        after.replace_all_uses_with(before)
    run_protocol(kernel, apart, NUM_STEPS)
    with pytest.raises(ProtocolBroken, match="meet"):
        run_protocol(kernel, replace(apart, overlaps=True), NUM_STEPS)


def test_rows_that_groups_do_not_share_stay_one_program(rng) -> None:
    """Maps of the blocks that a group would store went with the body of its role."""
    group = Group(rng, SHAPES)
    options = {**TILES, "M": 64, "num_consumer_groups": 2}
    call = by_descriptors.specialize_call(group.arguments(), {"P": 3, **options})
    placement = DevicePlacement("nvidia")
    request = make_request(call.source, call.specialization, call.options, placement, MACHINE)
    remarks = "\n".join(schedule_of(request).remarks)
    assert "not split into roles: 32 rows of a product are no multiple of 64" in remarks
    simulate(group, M=64)
    group.check()


def test_a_store_by_pointers_beside_made_maps_is_refused(rng) -> None:
    group = Group(rng, SHAPES)
    call = stored_by_pointers.specialize_call(group.arguments(), {"P": 3, **ROLES})
    placement = DevicePlacement("nvidia")
    request = make_request(call.source, call.specialization, call.options, placement, MACHINE)
    remarks = "\n".join(schedule_of(request).remarks)
    assert "the kernel is not split into roles: tt.store beside descriptors that" in remarks
    stored_by_pointers.simulate[(3,)](*group.arguments(), P=3, **ROLES, reachable=group.arrays())
    group.check()
