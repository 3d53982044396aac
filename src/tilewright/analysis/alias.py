"""Which bytes of shared memory a shared tile may be: its allocations, seen through views.

A view (a slot, a transposed tile) is of the same memory as its operand; loops and branches hand
shared tiles on. What comes out is a set of *places*, each a part of one allocation.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.encoding import SharedType, slot_bytes
from tilewright.ir.op import SharedViewOp
from tilewright.ir.regions import sources_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError


@dataclass(frozen=True)
class Place:
    """Bytes `start` up to `end` of what the op `root` allocates."""

    root: Operation
    start: int
    end: int


def tile_bytes(type_: SharedType) -> int:
    """The bytes of all slots of a shared tile."""
    return slot_bytes(type_) * type_.slots.data


def is_shared(value: SSAValue) -> bool:
    """Whether a value is a shared tile."""
    return isinstance(value.type, SharedType)


class SharedAliases:
    """The places of every shared tile of a function, found when they are asked for."""

    def __init__(self) -> None:
        self._places: dict[SSAValue, tuple[Place, ...]] = {}

    def places(self, value: SSAValue) -> tuple[Place, ...]:
        """Where a shared tile may lie; a view with an index that is not known lies anywhere."""
        found = self._places.get(value)
        if found is None:
            unique = dict.fromkeys(_place(*origin) for origin in _origins(value))
            found = self._places[value] = tuple(unique)
        return found

    def roots(self, value: SSAValue) -> tuple[Operation, ...]:
        """The ops that allocate what a shared tile may be."""
        return tuple(dict.fromkeys(place.root for place in self.places(value)))


# A slot that was chosen on the way from an allocation to a tile: None where it is not known.
_Path = tuple[int, int] | None


def _origins(value: SSAValue) -> Iterator[tuple[OpResult, _Path]]:
    """The results of allocating ops that a tile may be a part of, and which bytes of them."""
    pending: list[tuple[SSAValue, _Path]] = [(value, None)]
    seen: set[tuple[SSAValue, _Path]] = set()
    while pending:
        entry = pending.pop()
        if entry in seen:
            continue
        seen.add(entry)
        current, path = entry
        sources = sources_of(current)
        if sources is not None:
            pending.extend((source, path) for source in sources)
            continue
        if not isinstance(current, OpResult):
            raise InternalError(f"a shared tile is an argument of {_owner_name(current)}")
        op = current.op
        if isinstance(op, SharedViewOp):
            viewed = op.viewed(current)
            pending.append((viewed, _slot(viewed, op.slot_number()) if path is None else path))
        elif any(map(is_shared, op.operands)):
            raise InternalError(f"{op.name} does not say which shared tile it views")
        else:
            yield current, path


def _owner_name(argument: SSAValue) -> str:
    parent = argument.owner.parent_op()
    return "nothing" if parent is None else parent.name


def _slot(tile: SSAValue, number: int | None) -> _Path:
    if number is None:
        return None
    assert isinstance(tile.type, SharedType)
    size = slot_bytes(tile.type)
    return number * size, (number + 1) * size


def _place(source: OpResult, path: _Path) -> Place:
    assert isinstance(source.type, SharedType)
    start, end = path or (0, tile_bytes(source.type))
    return Place(source.op, start, end)
