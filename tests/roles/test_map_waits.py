"""Waits of the role that stores, for the maps that it makes: needed, or others stand for them.

A product stores to two arrays of its own. Where its second block goes onto numbers that were
read, roles meet in front of it; the first block's bytes are then forgotten, so they must be there.
"""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tests.roles.mutants import mutants_of
from tests.roles.test_grouped_mutants import OPTIONS, Case, is_meeting, noticed
from tests.roles.test_grouped_mutants import onto_itself as one_output
from tests.unit.grouped_programs import Group, by_descriptors
from tests.unit.targets.nvidia.persistent_kernels import TARGET, scheduled_for
from tilewright.ir.edits import erase
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingWaitOp
from tilewright.support.dataclass import replace
from tilewright.support.errors import DataRace, KernelFault, ProtocolBroken
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.partition.check_maps import check_maps
from tilewright.targets.nvidia.tma_ops import (
    LeaveMapSlotOp,
    MakeTensorMapOp,
    TmaStoreOp,
    TmaStoreWaitOp,
)
from tilewright.targets.target import Scheduled

ROWS, COLUMNS, DEPTH = 128, 64, 64
SIZES = {"M": ROWS, "N": COLUMNS, "K": 32, "num_consumer_groups": 1}
"""Two groups are refused: what two of them store may meet."""


@tilewright.jit
def to_two(
    a_all, b_all, c_all, d_all, depths, count,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Products [M, k] x [N, k] of one tile each, stored twice; k lies in rows of 64 numbers."""
    for g in range(count):
        k = tl.load(depths + g * 64)
        a = tl.load(a_all + g).to(tl.pointer_type(tl.float16))
        b = tl.load(b_all + g).to(tl.pointer_type(tl.float16))
        c = tl.load(c_all + g).to(tl.pointer_type(tl.float16))
        d = tl.load(d_all + g).to(tl.pointer_type(tl.float16))
        left = tl.make_tensor_descriptor(a, [M, k], [64, 1], [M, K])
        right = tl.make_tensor_descriptor(b, [N, k], [64, 1], [N, K])
        out = tl.make_tensor_descriptor(c, [M, N], [64, 1], [M, N])
        other = tl.make_tensor_descriptor(d, [1, N], [64, 1], [M, N])
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            acc = tl.dot(left.load([0, start]), right.load([0, start]).T, acc)
        out.store([0, 0], acc.to(tl.float16))
        other.store([0, 0], acc.to(tl.float16))


def onto_numbers() -> Case:
    """The second output of the first product goes onto its depth, its first one is the next A."""
    rng = np.random.default_rng(0)
    memory = np.zeros(8 * ROWS * 64, np.float16)
    a, c, last = (memory[n * ROWS * 64 :][: ROWS * 64].reshape(ROWS, 64) for n in range(3))
    b = memory[4 * ROWS * 64 :][: COLUMNS * 64].reshape(COLUMNS, 64)
    a[:] = rng.integers(-3, 4, a.shape)
    b[:] = np.eye(64)[rng.permutation(64)]
    depths = memory[5 * ROWS * 64 :][: 8 * 64].view(np.int32).reshape(4, 64)
    depths[:, 0] = DEPTH
    numbers = memory[6 * ROWS * 64 :][: 4 * 64].view(np.int64).reshape(4, 16)
    spare = memory[7 * ROWS * 64 :][:64]
    for row, arrays in zip(numbers, ((a, c), (b, b), (c, last), (depths[0], spare)), strict=True):
        row[:2] = [array.ctypes.data for array in arrays]
    expected = (a.astype(np.float64) @ b.T.astype(np.float64) @ b.T.astype(np.float64)).astype(
        np.float16
    )
    return Case((*numbers, depths, 2), [memory], last, expected)


def two_tiles() -> Case:
    """A product of two tiles beside a small one, whose arrays lie apart: nobody meets."""
    group = Group(np.random.default_rng(0), ((256, 64, 64), (8, 8, 8)))
    expected = group.a[0].astype(np.float64) @ group.b[0].astype(np.float64).T
    return Case(group.arguments(), group.arrays(), group.c[0], expected.astype(np.float16))


@pytest.fixture(scope="module")
def program() -> Scheduled:
    """Products of one output."""
    return scheduled_for(by_descriptors, one_output().arguments, 132, OPTIONS)[0]


@pytest.fixture(scope="module")
def of_two() -> Scheduled:
    """Products of two outputs."""
    return scheduled_for(to_two, onto_numbers().arguments, 132, SIZES)[0]


def noticed_of_two(program: Scheduled, module: ModuleOp, seed: int | None) -> str | None:
    """What is wrong with a launch of a changed program of two outputs; None where nothing is."""
    case = onto_numbers()
    call = to_two.specialize_call(case.arguments, SIZES)
    leaves = call.specialization.runtime_leaves()
    values = [(type_, call.arguments[str(path[0])]) for path, type_ in leaves]
    changed = replace(program, module=module)
    text = TARGET.emit(changed, named_machine("sm_90a"), CompileOptions(num_consumer_groups=1))
    reached = [(f"array {number}", array) for number, array in enumerate(case.arrays)]
    assert TARGET.simulate is not None
    try:
        TARGET.simulate(changed, text, "to_two", (1, 1, 1), values, seed, None, reached)
    except (KernelFault, DataRace) as fault:
        return str(fault)
    return None if case.is_right() else "wrong elements"


def waits_at_meetings(module: ModuleOp) -> list[TmaStoreWaitOp]:
    """The waits of the branches in which roles meet, in the order of the text."""
    return [
        op
        for op in module.walk()
        if isinstance(op, TmaStoreWaitOp)
        and op.parent is not None
        and any(isinstance(o, RingWaitOp) and is_meeting(o) for o in op.parent.ops)
    ]


def places_of_stores(module: ModuleOp) -> list[int]:
    """Which of those waits stand where a store follows in the block of their branch."""
    found: list[int] = []
    for number, wait in enumerate(waits_at_meetings(module)):
        branch = wait.parent_op()
        following = None if branch is None else branch.next_op
        while following is not None and not following.regions:
            if isinstance(following, TmaStoreOp):
                found.append(number)
            following = following.next_op
    return found


@pytest.mark.parametrize("seed", [None, 1])
def test_nothing_is_wrong_with_two_outputs(seed: int | None, of_two: Scheduled) -> None:
    assert noticed_of_two(of_two, of_two.module.clone(), seed) is None


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("drops", ["meeting", "stores", "both"])
def test_one_of_two_waits_is_needed_where_roles_meet_in_front_of_a_store(
    drops: str, seed: int | None, of_two: Scheduled
) -> None:
    """Behind a store to one of several maps its block is waited for, and where roles meet, too.

    A store by the map of the meeting's own store counts as stored again right behind it, and those
    by older maps were waited for when the map was made.
    """
    module = of_two.module.clone()
    if drops != "stores":
        erase(waits_at_meetings(module)[places_of_stores(module)[-1]])
    if drops != "meeting":
        for wait in waits_behind_stores(module):
            del wait.properties["is_complete"]
    message = noticed_of_two(of_two, module, seed)
    if drops == "both":
        assert message is not None and "which a store by the copy engine" in message
    else:
        assert message is None


def waits_behind_stores(module: ModuleOp) -> list[TmaStoreWaitOp]:
    """The complete waits for the block of a store, which hold its tile."""
    waits = (op for op in module.walk() if isinstance(op, TmaStoreWaitOp))
    return [op for op in waits if op.is_complete is not None and op.pending is None]


@pytest.mark.parametrize("seed", [None, 1])
def test_a_tile_is_written_when_the_engine_has_read_the_one_before(
    seed: int | None, program: Scheduled
) -> None:
    assert noticed(program, program.module.clone(), two_tiles(), seed) is None
    module = program.module.clone()
    (wait,) = (op for op in waits_of_tiles(module) if has_a_store_behind(op))
    erase(wait)
    assert noticed(program, module, two_tiles(), seed) is not None


def waits_of_tiles(module: ModuleOp) -> list[TmaStoreWaitOp]:
    """The waits until the engine has read its tiles."""
    return [op for op in module.walk() if isinstance(op, TmaStoreWaitOp) and not op.is_complete]


def has_a_store_behind(op: Operation) -> bool:
    """Whether a block is stored behind an op, on its straight line."""
    following = op.next_op
    while following is not None and not isinstance(following, TmaStoreOp):
        following = following.next_op
    return following is not None


def test_at_the_end_a_complete_wait_stands_for_one_of_the_tiles(program: Scheduled) -> None:
    """No store comes between, and who waits until blocks are in memory waits for their tiles."""
    (last,) = (op for op in waits_of_tiles(program.module) if not has_a_store_behind(op))
    before = last.prev_op
    assert isinstance(before, LeaveMapSlotOp)
    complete = before.prev_op
    assert isinstance(complete, TmaStoreWaitOp) and complete.is_complete is not None
    assert complete.pending is not None and complete.pending.value.data == 0
    module = program.module.clone()
    erase(next(op for op in waits_of_tiles(module) if not has_a_store_behind(op)))
    for case in (one_output(), two_tiles()):
        assert noticed(program, module.clone(), case, 1) is None


def test_no_map_is_made_anew_or_left_while_copies_use_it(program: Scheduled) -> None:
    """Without the waits for stores, and without those for loads."""
    check_maps(find_kernel(program.module))
    names = ("ttng.tma_store_wait", "ttg.ring_landed")
    caught: set[str] = set()
    mutants = [m for m in mutants_of(program.module) if m.name.startswith("dropped")]
    for mutant in (m for m in mutants if any(name in m.name for name in names)):
        module = program.module.clone()
        mutant.apply(module)
        try:
            check_maps(find_kernel(module))
        except ProtocolBroken as error:
            caught.add(str(error).split(": ", 1)[1].splitlines()[0])
    assert caught == {
        f"role {role}: {verb} while its {what} may still use them"
        for role, what in (("load", "loads"), ("math", "stores"))
        for verb in ("makes a tensor map anew", "leaves its maps")
    }


def test_a_wait_for_all_maps_but_one_is_too_few(program: Scheduled) -> None:
    module = program.module.clone()
    made = [op for op in module.walk() if isinstance(op, MakeTensorMapOp)][-1]
    wait = made.prev_op
    while not isinstance(wait, TmaStoreWaitOp):
        assert wait is not None
        wait = wait.prev_op
    del wait.properties["is_complete"]
    with pytest.raises(ProtocolBroken, match="role math: makes a tensor map anew while its stores"):
        check_maps(find_kernel(module))
