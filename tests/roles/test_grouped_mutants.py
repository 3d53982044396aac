"""Products of a group in roles, broken in every way: somebody notices, without a GPU.

The program makes its maps, and its roles meet where what is loaded may be what was stored. Data for
that: a product whose C is a part of its own A, one that stores the sizes of the next one, and one
that stores the distances of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tests.roles.mutants import mutants_of
from tests.unit.grouped_programs import Group, by_descriptors
from tests.unit.targets.nvidia.persistent_kernels import TARGET, scheduled_for
from tilewright.ir.edits import erase, insert_before
from tilewright.ir.op import Array, build
from tilewright.ir.types import i1, i64
from tilewright.machine.gpus import SM_90A
from tilewright.ops.control_flow import IfOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.elementwise.ir import PtrToIntOp
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingWaitOp
from tilewright.schedule.protocol.around import NUM_STEPS
from tilewright.schedule.protocol.check import check_protocol
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.dataclass import replace
from tilewright.support.errors import DataRace, KernelFault, ProtocolBroken
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.partition.check_maps import check_maps
from tilewright.targets.nvidia.tma_ops import MakeTensorMapOp, TmaStoreWaitOp
from tilewright.targets.target import Scheduled

Change = Callable[[ModuleOp], None]
OPTIONS = {"P": 1, "M": 128, "N": 64, "K": 32, "num_consumer_groups": 2}
COUNT = 5
"""The number of the argument that says how many products there are."""


@dataclass(frozen=True)
class Case:
    """The arguments of a launch of one program, all that they lead to, and what is right."""

    arguments: tuple[object, ...]
    arrays: Sequence[Array]
    output: Array
    expected: Array

    def is_right(self) -> bool:
        """Whether a launch left what it should."""
        return np.array_equal(self.output, self.expected)


def onto_itself() -> Case:
    """C begins 128 rows into A: the second tile multiplies what the first one has stored."""
    group = Group(np.random.default_rng(0), ((256, 64, 64), (8, 8, 8)))
    a = np.zeros((384, 64), np.float16)
    a[:256] = group.a[0]
    group.a[0], group.c[0] = a[:256], a[128:]
    group.b[0][:] = np.eye(64)[np.random.default_rng(1).permutation(64)]
    expected = a.copy()
    for row in (0, 128):
        expected[row + 128 : row + 256] = expected[row : row + 128] @ group.b[0].T
    return Case(group.arguments(), [a, *group.a[1:], *group.b, group.c[1]], a, expected)


def _numbers(stores: str) -> Case:
    """The first product stores `sizes` or `rows` of the second one, which has others before."""
    group = Group(np.random.default_rng(0), ((8, 8, 8), (8, 8, 8)))
    *addresses, sizes, rows, count = group.arguments()
    given = sizes if stores == "sizes" else rows
    assert isinstance(given, np.ndarray) and isinstance(addresses[2], np.ndarray)
    memory = np.zeros(40, np.int32)
    memory[:6] = given.ravel()
    memory[4:6] = 0
    stored = memory[4:36].view(np.float16).reshape(8, 8)
    group.a[0].view(np.uint16)[:] = 0
    group.a[0].view(np.uint16)[0, [0, 2]] = 8
    group.b[0][:] = np.eye(8)
    addresses[2][0] = stored.ctypes.data
    numbers = (memory, rows) if stores == "sizes" else (sizes, memory)
    arrays = [*group.a, *group.b, group.c[1]]
    expected = (group.a[1].astype(np.float64) @ group.b[1].astype(np.float64).T).astype(np.float16)
    return Case((*addresses, *numbers, count), arrays, group.c[1], expected)


CASES: tuple[Callable[[], Case], ...] = (
    onto_itself,
    lambda: _numbers("sizes"),
    lambda: _numbers("rows"),
)


@pytest.fixture(scope="module")
def program() -> Scheduled:
    """The program as it is emitted; that of every case."""
    return scheduled_for(by_descriptors, onto_itself().arguments, 132, OPTIONS)[0]


def noticed(program: Scheduled, module: ModuleOp, case: Case, seed: int | None) -> str | None:
    """What is wrong with a launch of a changed program; None where nothing is."""
    call = by_descriptors.specialize_call(case.arguments, OPTIONS)
    leaves = call.specialization.runtime_leaves()
    values = [(type_, call.arguments[str(path[0])]) for path, type_ in leaves]
    changed = replace(program, module=module)
    text = TARGET.emit(changed, named_machine("sm_90a"), CompileOptions(num_consumer_groups=2))
    reached = [(f"array {number}", array) for number, array in enumerate(case.arrays)]
    assert TARGET.simulate is not None
    try:
        TARGET.simulate(changed, text, "by_descriptors", (1, 1, 1), values, seed, None, reached)
    except (KernelFault, DataRace) as fault:
        return str(fault)
    return None if case.is_right() else "wrong elements"


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_nothing_is_wrong_with_the_program(
    number: int, seed: int | None, program: Scheduled
) -> None:
    assert noticed(program, program.module.clone(), CASES[number](), seed) is None


def meetings(module: ModuleOp) -> list[IfOp]:
    """The branches in which roles meet, in the order of the text."""
    return [
        op
        for op in module.walk()
        if isinstance(op, IfOp)
        and any(isinstance(o, RingWaitOp) and is_meeting(o) for o in op.regions[0].block.ops)
    ]


def is_meeting(op: RingWaitOp) -> bool:
    return op.ring_of().ring_name.data == "meet"


def never(value: SSAValue, before: Operation) -> None:
    """Let a condition be false where it is asked for."""
    false = build(ConstantOp, [], [i1], {"value": IntegerAttr(0, i1)}, location=before.location)
    insert_before(before, false)
    before.operands = [false.results[0] if o is value else o for o in before.operands]


def without_meeting(place: int) -> Change:
    """No role meets at a place of the text: the compare is dropped, in all of them."""

    def change(module: ModuleOp) -> None:
        found = meetings(module)
        per_role = len(found) // 2
        for branch in (found[place], found[per_role + place]):
            never(branch.operands[0], branch)

    return change


def without_ends(module: ModuleOp) -> None:
    """Stretches of bytes that end where they begin."""
    for op in module.walk():
        if isinstance(op, MakeTensorMapOp):
            for use in tuple(op.base.uses):
                if isinstance(use.operation, PtrToIntOp):
                    empty(use.operation.results[0])


def empty(start: SSAValue) -> None:
    """Let what is added to an address be the address."""
    for use in tuple(start.uses):
        if use.operation.name == "arith.addi":
            use.operation.results[0].replace_all_uses_with(start)


def without_waits(module: ModuleOp) -> None:
    """Roles meet while the engine still stores."""
    for branch in meetings(module):
        for op in tuple(branch.walk()):
            if isinstance(op, TmaStoreWaitOp):
                erase(op)


def products_of_spans(module: ModuleOp) -> list[Operation]:
    """Where roles compute the bytes of a tensor: products of 64 bits."""
    return [op for op in module.walk() if op.name == "arith.muli" and op.results[0].type == i64]


def of_rows_that_lie_together(module: ModuleOp) -> None:
    """Stretches of tensors whose rows are one element apart."""
    for op in products_of_spans(module):
        index = op.operands[0]
        if isinstance(index.owner, Operation) and index.owner.name == "arith.subi":
            op.results[0].replace_all_uses_with(index)


def of_bytes(module: ModuleOp) -> None:
    """Stretches of tensors whose elements have a byte."""
    for op in products_of_spans(module):
        size = op.operands[1].owner
        if isinstance(size, ConstantOp) and size.splat_value() == 2:
            op.results[0].replace_all_uses_with(op.operands[0])


CHANGES: dict[str, tuple[int, Change]] = {
    "sizes are read and nobody compares": (1, without_meeting(0)),
    "distances are read and nobody compares": (2, without_meeting(1)),
    "tiles are loaded and nobody compares": (0, without_meeting(2)),
    "tensors of no bytes": (0, without_ends),
    "tensors whose rows lie together": (0, of_rows_that_lie_together),
    "tensors of elements of a byte": (0, of_bytes),
    "roles meet while blocks are stored": (0, without_waits),
    "roles meet while sizes are stored": (1, without_waits),
    "roles meet while distances are stored": (2, without_waits),
}
"""The case that shows a change, and the change."""


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_dropped_is_noticed_in_every_order(
    name: str, seed: int | None, program: Scheduled
) -> None:
    number, change = CHANGES[name]
    module = program.module.clone()
    change(module)
    assert noticed(program, module, CASES[number](), seed) is not None


# --- what the protocol shows --------------------------------------------------------------------

LAUNCHES = [
    Launch({COUNT: count}, overlaps=overlaps) for count in (1, 5, 40) for overlaps in (False, True)
]
SPARED = ("given back first", "ttng.tma_store_wait", "ttg.barrier", "ttng.fence", "ttng.tma_store")
"""Where roles meet nobody looks at the slot, so it may be given back at once; what stores and their
tiles wait for has data."""


def is_broken(module: ModuleOp) -> bool:
    """Whether the checks or a run of the protocol notice that something is wrong."""
    kernel = find_kernel(module)
    try:
        check_protocol(kernel, SM_90A)
        check_maps(kernel)
        for launch in LAUNCHES:
            run_protocol(kernel, launch, NUM_STEPS)
    except ProtocolBroken:
        return True
    return False


def unnoticed(module: ModuleOp, part: int, of: int) -> list[str]:
    """The mutants that the protocol does not show, in one of so many parts of them."""
    found: list[str] = []
    mutants = [m for m in mutants_of(module) if not any(name in m.name for name in SPARED)]
    for mutant in mutants[part::of]:
        changed = module.clone()
        mutant.apply(changed)
        if not is_broken(changed):
            found.append(mutant.name)
    return found


def test_the_protocol_itself_holds(program: Scheduled) -> None:
    assert not is_broken(program.module.clone())


def test_mutants_of_a_group_break_the_protocol(program: Scheduled) -> None:
    assert unnoticed(program.module, 0, of=12) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(12))
def test_every_mutant_of_a_group_breaks_the_protocol(part: int, program: Scheduled) -> None:
    assert unnoticed(program.module, part, of=12) == []


def test_there_are_many_mutants(program: Scheduled) -> None:
    assert sum(1 for _ in mutants_of(program.module)) > 200
