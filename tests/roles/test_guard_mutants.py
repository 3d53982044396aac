"""Guards of launches, broken in every way: some launch that they let through meets what is stored.

A role loads ahead of stores through other arguments where the launch finds them apart. Whether they
are follows here from the bytes of the arrays, element by element, and not from what guards compute;
what a wrong guard lets through is said with its role, its ring and both lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from tests.fuzz.overlapping import K, M, N, blocks
from tests.unit.targets.nvidia.persistent_kernels import scheduled_for
from tilewright.ir.locations import describe
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingFill, RingOp
from tilewright.ops.roles import find_roles
from tilewright.runtime.launch_numbers import LaunchGuard, LaunchNumber, launch_guards
from tilewright.support.dataclass import replace
from tilewright.targets.nvidia.tma_ops import TensorMapOp, TmaStoreOp
from tilewright.targets.target import Scheduled

GRID = (1, 1, 1)
ELEMENT_BYTES = 2
SLOTS = {"a": 0, "b": 1, "c": 2, "m": 3, "n": 4, "k": 5}
SHAPES = {"a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n")}


@dataclass(frozen=True)
class Placed:
    """A launch: where its arrays start, in elements of 16 bits, and their sizes."""

    starts: dict[str, int]
    sizes: dict[str, int]

    def words(self) -> list[int]:
        """What guards are computed from."""
        places = [(1 << 20) + self.starts[name] * ELEMENT_BYTES for name in "abc"]
        return [*places, *(self.sizes[name] for name in "mnk")]

    def elements(self, name: str) -> range:
        """The elements of an array, which are adjacent."""
        rows, columns = (self.sizes[size] for size in SHAPES[name])
        return range(self.starts[name], self.starts[name] + rows * columns)

    def meets(self, loaded: str, stored: str) -> bool:
        """Whether an element is of both arrays."""
        return bool(set(self.elements(loaded)) & set(self.elements(stored)))


def launches() -> list[Placed]:
    """C touches A and B, overlaps them by little and by all, and lies apart; sizes of each kind."""
    found: list[Placed] = []
    for m, n, k in ((384, 32, 96), (256, 24, 40), (130, 16, 200), (384, 32, 8), (8, 32, 640)):
        sizes = {"m": m, "n": n, "k": k}
        apart = Placed({"a": 0, "b": 1 << 18, "c": 1 << 19}, sizes)
        found.append(apart)
        for name in "ab":
            first, last = apart.elements(name)[0], apart.elements(name)[-1] + 1
            length = len(apart.elements("c"))
            around = (first - length, first - length + 8, first, last - 8, last)
            found += [Placed({**apart.starts, "c": start}, sizes) for start in around]
    return found


LAUNCHES = launches()


def let_through(scheduled: Scheduled, guards: Sequence[LaunchGuard]) -> str | None:
    """What a launch that keeps to some guards loads ahead of its store; None where nothing."""
    for launch in LAUNCHES:
        words = launch.words()
        if not all(guard.holds(words, GRID) for guard in guards):
            continue
        for loaded in "ab":
            if launch.meets(loaded, "c"):
                return said(scheduled, loaded, launch)
    return None


def said(scheduled: Scheduled, loaded: str, launch: Placed) -> str:
    """The fault of a launch: who loads what through which ring, and what stores it."""
    kernel = find_kernel(scheduled.module)
    roles = find_roles(kernel)
    assert roles is not None
    store = next(op for op in kernel.walk() if isinstance(op, TmaStoreOp))
    for role, body in zip(roles.described(), roles.bodies, strict=True):
        for op in body.walk():
            if isinstance(op, RingFill) and loaded in names_of(op):
                ring = op.ring.owner
                assert isinstance(ring, RingOp)
                return (
                    f"role {role.name} loads `{loaded}` to ring {ring.ring_name.data} at "
                    f"{describe(op)} ahead of the store of `c` at {describe(store)}: {launch}"
                )
    raise AssertionError(f"no role loads {loaded}")


def names_of(fill: RingFill) -> list[str]:
    """The arguments that the tensor maps of a fill are made from."""
    maps = [value.owner for value in fill.operands if isinstance(value.owner, TensorMapOp)]
    return [value.name_hint or "" for made in maps for value in made.operands]


ARRAYS, SIZES = (0, 1, 2), (3, 4, 5)


def mutants_of(number: LaunchNumber) -> Iterator[tuple[str, LaunchNumber]]:
    """Numbers that a mistake would leave: with another array, or another distance of rows.

    A distance is another one wherever it stands: of an index whose least is 0 it does not count.
    """
    yield from _with_another_array(number)
    for size in SIZES:
        for other in SIZES:
            changed = _with_distance(number, size, other)
            if changed != number:
                yield f"distance {other} for {size}", changed


def _with_another_array(number: LaunchNumber) -> Iterator[tuple[str, LaunchNumber]]:
    kind, first, *rest = number
    if kind == "slot" and first in ARRAYS:
        for other in ARRAYS:
            if other != first:
                yield f"array {other} for {first}", (kind, other, *rest)
    for index, operand in enumerate(rest):
        if isinstance(operand, tuple):
            for name, changed in _with_another_array(operand):
                yield name, (kind, first, *rest[:index], changed, *rest[index + 1 :])


def _with_distance(number: LaunchNumber, size: int, other: int) -> LaunchNumber:
    kind, first, *rest = number
    if kind == "signed" and rest[0] == ("slot", size, 32):
        return kind, first, ("slot", other, 32)
    operands = (_with_distance(x, size, other) if isinstance(x, tuple) else x for x in rest)
    return (kind, first, *operands)


@pytest.fixture(scope="module")
def program() -> Scheduled:
    """A product over tiles in roles, whose launch compares its arguments."""
    m, n, k = 256, 32, 32
    arrays = [np.zeros(shape, np.float16) for shape in ((m, k), (k, n), (m, n))]
    options = {"M": M, "N": N, "K": K, "num_consumer_groups": 2}
    return scheduled_for(blocks, [*arrays, m, n, k], 132, options)[0]


def holds(guards: Sequence[LaunchGuard], launch: Placed) -> bool:
    """Whether a launch keeps to all guards."""
    return all(guard.holds(launch.words(), GRID) for guard in guards)


def test_the_guards_let_through_just_the_launches_that_are_apart(program: Scheduled) -> None:
    guards = launch_guards(program.metadata)
    assert [guard.text for guard in guards] == ["a and c do not overlap", "b and c do not overlap"]
    assert let_through(program, guards) is None
    apart = [not (launch.meets("a", "c") or launch.meets("b", "c")) for launch in LAUNCHES]
    assert [holds(guards, launch) for launch in LAUNCHES] == apart
    assert sum(apart) == 25 and len(apart) == 55


@pytest.mark.parametrize(("dropped", "loaded"), [(0, "a"), (1, "b")])
def test_a_dropped_guard_is_named_by_role_ring_and_line(
    dropped: int, loaded: str, program: Scheduled
) -> None:
    guards = [*launch_guards(program.metadata)]
    del guards[dropped]
    fault = let_through(program, guards)
    assert fault is not None
    assert f"role load loads `{loaded}` to ring ring0 at " in fault
    assert fault.count("overlapping.py:") == 2


def test_every_guard_of_another_array_or_distance_of_rows_is_noticed(program: Scheduled) -> None:
    """It lets a launch through that overlaps, or refuses one that is apart."""
    guards = launch_guards(program.metadata)
    unnoticed, faults, total = list[str](), 0, 0
    for number, guard in enumerate(guards):
        for name, changed in mutants_of(guard.number):
            wrong = (*guards[:number], replace(guard, number=changed), *guards[number + 1 :])
            total += 1
            if let_through(program, wrong) is not None:
                faults += 1
            elif all(holds(wrong, launch) == holds(guards, launch) for launch in LAUNCHES):
                unnoticed.append(f"{guard.text}: {name}")
    assert unnoticed == []
    assert total >= 20 and faults >= total // 3, (total, faults)
