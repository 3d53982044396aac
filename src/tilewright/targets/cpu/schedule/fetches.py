"""What a row kernel fetches beside its arithmetic: the next program's rows, this one's result.

A softmax reads a row, computes exponentials in the caches, and writes a row. One after the
other, the core waits for memory, then memory for the core. So a nest that needs no new line
asks for those that come next, a chunk's worth with each chunk (`nests/fetching.py`):

    maximum              reads x, which is there
    exponentials, sum    fetches out, to be written
    quotients            writes out, which is there; fetches the next program's x

Measured on Emerald Rapids, 2026-11-22, one thread, softmax of 4096x1024 f32: each of the two
fetches takes a third off, both together 38 %. Apart from each other, as here, where both stood
beside the exponentials (a Xeon with AVX-512 and AMX, quiet, 2026-11-27, one thread, us before and
now): softmax of 4096x1024 f32 1489 and 1421, 2048x2048 1630 and 1420, 1024x4096 1773 and 1490,
layer norm of 4096x1000 at +16 bytes 1387 and 1288, 1024x4096 1742 and 1446. Stores that bypass
the cache wait for memory themselves: there softmax of 4096x4096 would go from 6.9 to 8.3 ms. A
fetch changes no result and never faults, so the place at the next program id is a guess that
needs no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.ir.effects import global_access, is_free
from tilewright.ir.types import shape_of
from tilewright.ops.program.ir import GetProgramIdOp
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable
from tilewright.support.worklist import needed_first
from tilewright.targets.cpu.schedule.block_steps import Step
from tilewright.targets.cpu.schedule.bufferization import Bufferization
from tilewright.targets.cpu.schedule.inline import is_expensive, is_tile, own_cost, owner
from tilewright.targets.cpu.schedule.roots import SCALAR_KINDS, RootKind, operands_of, scalars_of
from tilewright.targets.cpu.schedule.rows import is_row

_CHEAP = 2
"""The cost of a division of integers by a constant, the dearest scalar computed for a fetch.

Chosen, not measured: it keeps the work before a nest's loops to a few instructions."""


@dataclass(frozen=True, eq=False)
class Fetch:
    """A row that a nest asks for: the next program's, or the one that this program will write.

    `pointer`: the tile of pointers. `instead`: pointers to what is near anyway, asked for in its
    place where the row of `result` bypasses the cache, or, of what `is_streamed`, where it does
    not.
    """

    pointer: SSAValue
    is_write: bool
    instead: SSAValue | None = None
    result: SSAValue | None = None
    is_streamed: bool = False


@dataclass(frozen=True)
class _Row:
    """An access of the block: its pointers, and the first step that makes it."""

    pointer: SSAValue
    first: int

    @property
    def space(self) -> tuple[int, ...]:
        return shape_of(self.pointer.type)


def plan_fetches(bufferization: Bufferization, steps: Sequence[Step]) -> dict[Step, list[Fetch]]:
    """What each nest of a kernel's outermost block fetches."""
    found: dict[Step, list[Fetch]] = {}
    nests = [number for number, step in enumerate(steps) if _is_host(step)]
    loads, results = (_rows(bufferization, steps, is_write) for is_write in (False, True))
    for row in loads:
        hosts = _fitting(steps, _with_time(bufferization, steps, nests, row), row)
        reader = steps[row.first]
        for host, fetch in _fetches_of_next(bufferization, hosts, row, reader, results):
            found.setdefault(host, []).append(fetch)
    for row in results:
        hosts = _fitting(steps, [n for n in nests if n < row.first], row)
        near = next((load.pointer for load in loads if load.space == row.space), None)
        if hosts and near is not None:
            heavy = [step for step in hosts if _is_heavy(bufferization, step)]
            host = heavy[-1] if heavy else (_folds(hosts) or hosts)[0]
            found.setdefault(host, []).append(Fetch(row.pointer, True, near, row.pointer))
    return found


def _fetches_of_next(
    bufferization: Bufferization,
    hosts: Sequence[Step],
    row: _Row,
    reader: Step,
    results: Sequence[_Row],
) -> Iterator[tuple[Step, Fetch]]:
    """Where the next program's row is fetched: beside the stores of a result in the cache.

    Stores that bypass it are what that nest waits for: then beside an expensive op, or a fold. So
    are those of a row whose first nest has an expensive op and time.
    """
    if not hosts:
        return
    last, heavy = hosts[-1], [step for step in hosts if _is_heavy(bufferization, step)]
    host = (heavy or _folds(hosts) or hosts)[-1]
    stored = {root.values[0] for root in last.roots if root.kind is RootKind.STORE}
    result = next((each.pointer for each in results if each.pointer in stored), None)
    if host in (last, reader) or result is None:
        yield host, Fetch(row.pointer, False)
        return
    for step, is_streamed in ((last, False), (host, True)):
        yield step, Fetch(row.pointer, False, row.pointer, result, is_streamed)


def _fitting(steps: Sequence[Step], numbers: Sequence[int], row: _Row) -> list[Step]:
    """The steps of these numbers that are nests over a row's indices."""
    return [steps[n] for n in numbers if steps[n].roots[0].space == row.space]


def _folds(hosts: Sequence[Step]) -> list[Step]:
    return [step for step in hosts if any(r.kind is RootKind.REDUCE for r in step.roots)]


def _with_time(
    bufferization: Bufferization, steps: Sequence[Step], nests: Sequence[int], row: _Row
) -> list[int]:
    """The nests that have time to fetch a row for the next program.

    The first nest that reads a row waits for it, unless it computes something expensive: then it
    has more time than those after it. Measured on Zen 5, 2026-11-22, one thread, busy, in turn:
    GELU + residual + layer norm of 4096x1000 f32 2.51 to 1.98 ms, of 1024x4096 3.14 to 2.16 ms.
    """
    later = [number for number in nests if number > row.first]
    if later and row.first in nests and _is_heavy(bufferization, steps[row.first]):
        return [row.first, *later]
    return later


def _is_host(step: Step) -> bool:
    """Whether a step is a nest of vectors over one row."""
    if not step.roots or step.roots[0].kind in SCALAR_KINDS | {RootKind.SCAN}:
        return False
    return sum(extent > 1 for extent in step.roots[0].space) == 1


def _is_heavy(bufferization: Bufferization, step: Step) -> bool:
    return any(is_expensive(op) for op in _computed(bufferization, step))


def _computed(bufferization: Bufferization, step: Step) -> Iterator[Operation]:
    """The ops that a step evaluates: not those whose tiles it reads back."""
    made = {root.values[0] for root in step.roots if root.kind is RootKind.MATERIALIZE}
    for value in step.reached:
        op = owner(value)
        if op is not None and (value in made or not bufferization.is_stored(value)):
            yield op


def _rows(bufferization: Bufferization, steps: Sequence[Step], is_write: bool) -> list[_Row]:
    """The rows that the nests read or write, whose place depends on the program."""
    first: dict[SSAValue, int] = {}
    for number, step in enumerate(steps):
        for pointer in _pointers(bufferization, step, is_write):
            first.setdefault(pointer, number)
    rows = (_Row(pointer, number) for pointer, number in first.items())
    structure = bufferization.structure
    return [row for row in rows if is_row(structure, row.pointer) and _moves(row.pointer)]


def _pointers(bufferization: Bufferization, step: Step, is_write: bool) -> Iterator[SSAValue]:
    """The tiles of pointers through which a step reads, or writes, memory."""
    stores = (root.op for root in step.roots if root.kind is RootKind.STORE)
    ops: Iterable[Operation] = stores if is_write else _computed(bufferization, step)
    for op in ops:
        access = global_access(op)
        if access is None or access.value is None or access.atomic is not None:
            continue
        if access.writes is is_write and is_tile(access.value):
            yield access.value


GROWTH: RuleTable[Callable[..., int]] = RuleTable("growth from program to program")
"""By how much the result of an op is greater in the next program."""


@GROWTH.register(GetProgramIdOp)
def _of_program_id(op: GetProgramIdOp) -> int:
    return int(op.axis.value.data == 0)


def growth(op: Operation) -> int:
    """By how much an op itself makes its result differ in the next program."""
    rule = GROWTH.find(type(op))
    return 0 if rule is None else rule(op)


def _is_cheap(op: Operation) -> bool:
    """Whether an op may be done once more, on the numbers of a program that may not exist.

    No quotient whose divisor may be zero there.
    """
    return not op.regions and is_free(op) and own_cost(op) <= _CHEAP


def _moves(pointer: SSAValue) -> bool:
    """Whether scalars without effects, the program's id among them, say where a row lies."""
    seen: set[SSAValue] = set()
    moves = False
    for scalar in scalars_of(pointer):
        for value in needed_first(scalar, operands_of, seen.__contains__):
            seen.add(value)
            op = owner(value)
            if is_tile(value) or not (op is None or _is_cheap(op)):
                return False
            moves = moves or (op is not None and growth(op) != 0)
    return moves
