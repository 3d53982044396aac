"""What an op does besides computing its results."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, MemoryReadEffect, MemoryWriteEffect, Pure

from tilewright.support.dataclass import dataclass

# Ops whose meaning is that of their regions; they come from xDSL without effects of their own.
_STRUCTURAL = frozenset({"scf.for", "scf.if", "scf.while", "cpu.nest", "tt.func", "builtin.module"})


@dataclass(frozen=True)
class Effects:
    """Whether an op, with all that is inside of it, reads or writes memory."""

    reads: bool
    writes: bool

    def __or__(self, other: Effects) -> Effects:
        return Effects(self.reads or other.reads, self.writes or other.writes)


NONE = Effects(False, False)
ANY = Effects(True, True)


def effects_of(operation: Operation) -> Effects:
    """The effects of an op and of every op nested in it.

    Printing, asserting and synchronizing count as reading and writing, so that they stay in
    order. An op that says nothing about itself counts as doing everything.
    """
    if operation.name in _STRUCTURAL:
        total = NONE
        for nested in _nested(operation):
            total = total | effects_of(nested)
        return total
    return own_effects(operation)


def own_effects(operation: Operation) -> Effects:
    """The effects of an op without what is nested in it: none for loops and branches."""
    if operation.name in _STRUCTURAL:
        return NONE
    reads = operation.has_trait(MemoryReadEffect)
    writes = operation.has_trait(MemoryWriteEffect)
    if reads or writes:
        return Effects(reads, writes)
    if operation.has_trait(Pure) or operation.has_trait(IsTerminator):
        return NONE
    return ANY


def _nested(operation: Operation) -> list[Operation]:
    return [op for region in operation.regions for block in region.blocks for op in block.ops]


def is_removable(operation: Operation) -> bool:
    """Whether an op without uses may be deleted: it writes nothing and it ends.

    A loop on a condition may run forever, which waiting for another program is; it stays.
    """
    if operation.has_trait(IsTerminator):
        return False
    if any(nested.name == "scf.while" for nested in operation.walk()):
        return False
    return not effects_of(operation).writes
