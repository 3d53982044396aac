"""Fills slots of rings by copies of threads (T1 to T1).

    %x = load %p, %mask; put %ring, %x
    ⇒ %s = ring_acquire %ring; async_copy %p, %mask → %s; ring_commit %ring by copies

Each thread copies its part of the tile and goes on; the slot is full when the copies of all of them
are there. What products read of it is shown to their proxy where the slot was waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation

from tilewright.ir.annotations import annotate, decided
from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import erase, insert_before
from tilewright.ir.encoding import TOKEN, SharedType
from tilewright.ir.op import build
from tilewright.ir.plans import AccessAttr
from tilewright.ops.channels import PutOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.rings import RingAcquireOp, RingCommitOp, RingOp, slot_types
from tilewright.ops.staging import AsyncCopyOp, ConvertLayoutOp
from tilewright.schedule.plan.copies import copy_elems
from tilewright.support.dataclass import replace
from tilewright.support.errors import InternalError


def copies_of(puts: Sequence[PutOp]) -> list[LoadOp]:
    """The loads by pointers that fill a ring; none where the copy engine does."""
    loads = (_load_of(put) for put in puts)
    return [load for load in loads if isinstance(load, LoadOp)]


def _load_of(put: PutOp) -> Operation:
    """What makes the first tile of a fill."""
    owner = put.values[0].owner
    while isinstance(owner, ConvertLayoutOp):
        owner = owner.src.owner
    assert isinstance(owner, Operation)
    return owner


def fill_by_threads(put: PutOp, ring: RingOp) -> None:
    """Start the copies of a fill, where it is put."""
    load, (slot_type,) = _load_of(put), slot_types(ring)
    assert isinstance(load, LoadOp) and isinstance(slot_type, SharedType)
    elems = copy_elems(load, slot_type)
    if not elems:
        raise InternalError(f"ring {ring.ring_name.data} has no copies that threads can make")
    acquire = build(RingAcquireOp, [ring.result], [slot_type], location=put.location)
    masks = [] if load.mask is None else [load.mask]
    properties = {
        name: load.properties[name] for name in ("cache", "evict") if name in load.properties
    }
    properties["operandSegmentSizes"] = integer_array((1, 1, len(masks), 0))
    operands = [load.ptr, acquire.results[0], *masks]
    copy = build(AsyncCopyOp, operands, [TOKEN], properties, location=load.location)
    annotate(copy, AccessAttr(replace(decided(load, AccessAttr), vector=elems)))
    all_bytes: dict[str, Attribute] = {"by_copies": UnitAttr()}
    commit = build(RingCommitOp, [ring.result], (), all_bytes, location=put.location)
    for op in (acquire, copy, commit):
        insert_before(put, op)
    values = put.values
    erase(put)
    for value in values:
        owner = value.owner
        if isinstance(owner, ConvertLayoutOp) and value.first_use is None:
            erase(owner)
    erase(load)
