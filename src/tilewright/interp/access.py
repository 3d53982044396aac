"""Checked reads and writes of memory by a program, whole tiles at a time.

An access passes these checks in order: inside an argument, aligned, writable, initialised,
no race. Each names the argument, the element and the lane at fault.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.ir import Operation

from tilewright.interp.concurrency import Place
from tilewright.interp.memory import Allocation
from tilewright.interp.program import Program
from tilewright.ir.effects import Resource
from tilewright.ir.locations import describe
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    DataRace,
    DivisionByZero,
    KernelFault,
    MisalignedAccess,
    NullAccess,
    OutOfBoundsAccess,
    ReadOnlyWrite,
    UndefinedValue,
    UninitializedRead,
)

_NULL_PAGE = 1 << 16
# Half the distance of two allocations, and the page by which their bases may be shifted.
_REACH = (1 << 39) + 4096


@dataclass(frozen=True)
class Lanes:
    """The lanes of an access: their flat addresses, and where they lie in a tile of `shape`.

    `positions` holds the flat index of each lane in the tile, or None for all of them.
    """

    addresses: Array
    positions: Array | None
    shape: tuple[int, ...]

    def index(self, lane: int) -> tuple[int, ...]:
        """The index of a lane in the tile."""
        flat = lane if self.positions is None else int(self.positions[lane])
        return tuple(int(i) for i in np.unravel_index(flat, self.shape)) if self.shape else ()

    def select(self, chosen: Array) -> Lanes:
        """The lanes at `chosen` (flat indices among these lanes)."""
        positions = chosen if self.positions is None else self.positions[chosen]
        return Lanes(self.addresses[chosen], positions, self.shape)


def lanes_of(addresses: Array, mask: Array | None) -> Lanes:
    """The active lanes of a tile of addresses."""
    addresses = np.asarray(addresses)
    if mask is not None and np.shape(mask) != addresses.shape:
        mask = np.broadcast_to(mask, addresses.shape)
    if mask is None or mask.all():
        return Lanes(np.atleast_1d(addresses.ravel()), None, addresses.shape)
    positions = np.flatnonzero(mask)
    return Lanes(np.atleast_1d(addresses.ravel())[positions], positions, addresses.shape)


def require_defined(
    program: Program, what: str, poison: Array | None, mask: Array | None = None
) -> None:
    """Raise UndefinedValue if any element that matters is undefined."""
    if poison is None:
        return
    relevant = poison if mask is None else poison & mask
    if not np.any(relevant):
        return
    relevant = np.asarray(relevant)
    index = tuple(int(i[0]) for i in np.nonzero(relevant)) if relevant.ndim else ()
    at = f" at tile index {index}" if index else ""
    division = program.divided_by_zero
    if division is not None and _is_computed_from(program.operation, division):
        program.operation = division
        raise program.fault(
            DivisionByZero, f"an integer is divided by zero, and {what} is that{at}"
        )
    raise program.fault(UndefinedValue, f"{what} is undefined{at}")


def _is_computed_from(operation: Operation | None, source: Operation) -> bool:
    """Whether an op's operands come from `source`, as far as they are results of ops."""
    pending, seen = [operation], {operation}
    while pending:
        current = pending.pop()
        if current is source:
            return True
        owners = [] if current is None else [value.owner for value in current.operands]
        fresh = [op for op in owners if isinstance(op, Operation) and op not in seen]
        seen.update(fresh)
        pending += fresh
    return False


def read(program: Program, lanes: Lanes, dtype: np.dtype, kind: str = "read") -> Array:
    """The values at the lanes' addresses, after every check; one per lane.

    An empty `kind` skips the race check, for the first half of a read-modify-write.
    """
    program.touch(Resource.GLOBAL, writes=False)
    program.last_read = program.operation
    parts = list(_by_allocation(program, lanes))
    if len(parts) == 1:
        return _read_part(program, *parts[0], dtype, kind)
    values = np.empty(lanes.addresses.shape, dtype)
    for allocation, part, chosen in parts:
        values[chosen] = _read_part(program, allocation, part, None, dtype, kind)
    return values


def write(program: Program, lanes: Lanes, values: Array, kind: str = "write") -> None:
    """Store one value per lane, after every check; the last lane wins."""
    program.touch(Resource.GLOBAL, writes=True)
    for allocation, part, chosen in _by_allocation(program, lanes):
        chosen_values = values if chosen is None else values[chosen]
        width = values.dtype.itemsize
        offsets = _checked_offsets(program, allocation, part, width, "store")
        if not allocation.writable:
            name = allocation.extent_at(int(offsets[0])).name
            raise program.fault(
                ReadOnlyWrite, f"store into `{name}`, which is read-only", argument=name
            )
        _check_race(program, allocation, part, offsets, width, kind)
        target = allocation.view(values.dtype)
        indices = (offsets + allocation.lead) // width
        # A spinning atomic that writes what was there lets nobody go on.
        if kind == "write" or target[indices].tobytes() != chosen_values.tobytes():
            program.machine.memory.version += 1
        target[indices] = chosen_values
        if allocation.initialized is not None:
            _mark(allocation.initialized, offsets, width, True)


def _mark(flags: Array, offsets: Array, width: int, value: bool) -> None:
    for byte in range(width):
        flags[offsets + byte] = value


def unknown_lanes(program: Program, lanes: Lanes, width: int) -> Array | None:
    """The lanes that would read private memory before it is written.

    A schedule may read such bytes as long as nothing depends on them, so they are no fault but
    undefined values.
    """
    allocation = private_memory(program, lanes)
    if allocation is None or allocation.initialized is None:
        return None
    known = _known(allocation.initialized, lanes.addresses - allocation.base, width)
    return None if known.all() else ~known


def forget_lanes(program: Program, lanes: Lanes, width: int) -> None:
    """Mark private memory at the lanes as undefined, after undefined values were stored."""
    allocation = private_memory(program, lanes)
    assert allocation is not None and allocation.initialized is not None
    _mark(allocation.initialized, lanes.addresses - allocation.base, width, False)


def private_memory(program: Program, lanes: Lanes) -> Allocation | None:
    """The private buffer that the lanes point into, if they do."""
    if not lanes.addresses.size:
        return None
    allocation = program.machine.memory.find(int(lanes.addresses[0]))
    return allocation if allocation is not None and allocation.private else None


def _known(flags: Array, offsets: Array, width: int) -> Array:
    """Which lanes have all their bytes initialised; bytes outside of the memory count."""
    known = np.ones(offsets.shape, np.bool_)
    inside = (offsets >= 0) & (offsets + width <= flags.size)
    for byte in range(width):
        known[inside] &= flags[offsets[inside] + byte]
    return known


def _by_allocation(
    program: Program, lanes: Lanes
) -> Iterator[tuple[Allocation, Lanes, Array | None]]:
    """The lanes grouped by the allocation they point near to."""
    addresses = lanes.addresses
    if not addresses.size:
        return
    memory = program.machine.memory
    low, high = int(addresses.min()), int(addresses.max())
    first = memory.find(low)
    if first is not None and first is memory.find(high):
        yield first, lanes, None
        return
    remaining = np.arange(addresses.size)
    while remaining.size:
        address = int(addresses[remaining[0]])
        allocation = memory.find(address)
        if allocation is None:
            raise _wild_access(program, lanes, int(remaining[0]))
        near = np.abs(addresses[remaining] - allocation.base) <= _REACH
        chosen = remaining[near]
        yield allocation, lanes.select(chosen), chosen
        remaining = remaining[~near]


def _wild_access(program: Program, lanes: Lanes, lane: int) -> KernelFault:
    address = int(lanes.addresses[lane])
    at = _lane_text(lanes, lane)
    if abs(address) < _NULL_PAGE:
        return program.fault(NullAccess, f"access through a null pointer{at}")
    return program.fault(
        OutOfBoundsAccess,
        f"access of an address that belongs to no argument{at}",
        hint="pass the arrays that the kernel reaches through pointers in memory as `reachable`",
    )


def _lane_text(lanes: Lanes, lane: int) -> str:
    index = lanes.index(lane)
    return f" at tile index {index}" if index else ""


def _read_part(
    program: Program,
    allocation: Allocation,
    lanes: Lanes,
    chosen: Array | None,
    dtype: np.dtype,
    kind: str,
) -> Array:
    width = dtype.itemsize
    offsets = _checked_offsets(program, allocation, lanes, width, "load")
    if allocation.initialized is not None and not allocation.private:
        _check_initialized(program, allocation, lanes, offsets, width)
    _check_race(program, allocation, lanes, offsets, width, kind)
    return allocation.view(dtype)[(offsets + allocation.lead) // width]


def _checked_offsets(
    program: Program, allocation: Allocation, lanes: Lanes, width: int, verb: str
) -> Array:
    """Byte offsets in the allocation of lanes that are all inside of it and aligned."""
    offsets = lanes.addresses - allocation.base
    if int(offsets.min()) < 0 or int(offsets.max()) + width > allocation.size:
        outside = (offsets < 0) | (offsets + width > allocation.size)
        raise _out_of_bounds(program, allocation, lanes, offsets, int(np.argmax(outside)), verb)
    if width > 1 and int(np.bitwise_or.reduce(lanes.addresses)) & (width - 1):
        lane = int(np.argmax(lanes.addresses % width != 0))
        extent = allocation.extent_at(int(offsets[lane]))
        raise program.fault(
            MisalignedAccess,
            f"{verb} of {width} bytes at an address of `{extent.name}` that is no multiple of "
            f"{width}{_lane_text(lanes, lane)}",
            argument=extent.name,
        )
    if allocation.inside is not None:
        outside = ~allocation.inside[offsets]
        if outside.any():
            raise _out_of_bounds(program, allocation, lanes, offsets, int(np.argmax(outside)), verb)
    return offsets


def _out_of_bounds(
    program: Program, allocation: Allocation, lanes: Lanes, offsets: Array, lane: int, verb: str
) -> KernelFault:
    offset = int(offsets[lane])
    extent = allocation.extent_at(offset)
    itemsize = extent.dtype.itemsize
    element = (offset - extent.origin) // itemsize
    count = (extent.stop - extent.start) // itemsize
    where = "between the elements of a strided view of" if 0 <= element < count else "outside of"
    return program.fault(
        OutOfBoundsAccess,
        f"{verb} of element {element}, {where} `{extent.name}` "
        f"({count} elements){_lane_text(lanes, lane)}",
        argument=extent.name,
    )


def _check_initialized(
    program: Program, allocation: Allocation, lanes: Lanes, offsets: Array, width: int
) -> None:
    flags = allocation.initialized
    assert flags is not None
    known = _known(flags, offsets, width)
    if known.all():
        return
    lane = int(np.argmin(known))
    extent = allocation.extent_at(int(offsets[lane]))
    element = (int(offsets[lane]) - extent.origin) // extent.dtype.itemsize
    raise program.fault(
        UninitializedRead,
        f"load of element {element} of `{extent.name}`, which nothing has written"
        f"{_lane_text(lanes, lane)}",
        argument=extent.name,
    )


_VERBS = {
    "read": "read",
    "read2": "read",
    "write": "write",
    "atomic_read": "atomic read",
    "atomic_write": "atomic write",
}


def _check_race(
    program: Program, allocation: Allocation, lanes: Lanes, offsets: Array, width: int, kind: str
) -> None:
    detector = program.machine.races
    if detector is None or allocation.private or allocation.foreign or not kind:
        return
    assert program.operation is not None
    place = Place(allocation.base, allocation.size + allocation.lead, offsets + allocation.lead)
    race = detector.access(program.index, program.operation, kind, place, width)
    if race is None:
        return
    extent = allocation.extent_at(int(offsets[race.lane]))
    element = (int(offsets[race.lane]) - extent.origin) // extent.dtype.itemsize
    other = coordinates_of(race.other_program, program.machine.grid)
    raise program.fault(
        DataRace,
        f"{_VERBS[kind]} of element {element} of `{extent.name}` races with the "
        f"{_VERBS[race.other_kind]} by program {other} at {describe(race.other_operation)}",
        argument=extent.name,
    )


def coordinates_of(index: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """The coordinates of the program with linear `index`; x runs fastest."""
    return index % grid[0], index // grid[0] % grid[1], index // (grid[0] * grid[1])
