"""The boxes in which the copy engine moves a block, as an attribute of the access and of its map.

    "tt.descriptor_load"(%map, %i, %j) {ttng.box = #ttng.box<"64x64, swizzle 128">}

`select-tensor-maps` decides it, or obeys one that is there; staging, the map and emission read it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_attr_definition

from tilewright.ir.annotations import PlanAttr, annotate, annotated, decided
from tilewright.ir.locations import span_of
from tilewright.ir.types import DescriptorType, shape_of, storage_bytes
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanRefused
from tilewright.targets.nvidia.tma.boxes import BoxPlan, box_reason

if TYPE_CHECKING:
    from typing import Self

_TEXT = re.compile(r"(?P<box>\d+(?:x\d+)*), swizzle (?P<swizzle>\d+)")


@dataclass(frozen=True)
class Box:
    """The extents of a box, and the bytes of the swizzle in which it lies in shared memory."""

    WHAT: ClassVar[str] = "boxes"
    EXAMPLE: ClassVar[str] = "64x64, swizzle 128"
    DECIDED_BY: ClassVar[str] = "select-tensor-maps"

    extents: tuple[int, ...]
    swizzle_bytes: int
    reason: str = ""

    @classmethod
    def read(cls, text: str, reason: str = "") -> Self | None:
        """The boxes that a text says; None where it says none."""
        match = _TEXT.fullmatch(text)
        if match is None:
            return None
        return cls(tuple(map(int, match["box"].split("x"))), int(match["swizzle"]), reason)

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.extents))}, swizzle {self.swizzle_bytes}"


@irdl_attr_definition
class BoxAttr(PlanAttr[Box]):
    """The boxes of an access through a tensor map or of the map, as `#ttng.box<"64x64, …">`."""

    name = "ttng.box"
    plan = Box


def annotate_box(op: Operation, plan: BoxPlan) -> None:
    """Write the boxes of a block on an access or a map."""
    annotate(op, BoxAttr(Box(plan.box, plan.swizzle_bytes)))


def copy_box(source: Operation, target: Operation) -> None:
    """Write the box of an access on what becomes of it."""
    annotate(target, BoxAttr(decided(source, BoxAttr)))


def box_plan(op: Operation, desc: SSAValue) -> BoxPlan:
    """The boxes of an access or a map, whose descriptor is `desc`. *Raises*: PlanMissing."""
    box = decided(op, BoxAttr)
    assert isinstance(desc.type, DescriptorType)
    block = desc.type.block
    return BoxPlan(shape_of(block), storage_bytes(block), box.swizzle_bytes, box.extents)


def given_boxes(op: Operation, shape: tuple[int, ...], element_bytes: int) -> BoxPlan | None:
    """The boxes that someone annotated on an access; None where nobody did.

    *Raises*: PlanRefused for boxes that the engine does not move.
    """
    box = annotated(op, BoxAttr)
    if box is None:
        return None
    plan = BoxPlan(shape, element_bytes, box.swizzle_bytes, box.extents)
    reason = box_reason(plan)
    if reason:
        raise refused_box(op, reason)
    return plan


def refused_box(op: Operation, reason: str) -> PlanRefused:
    """The error for an annotated box that cannot be."""
    span, chain = span_of(op)
    return PlanRefused(
        f"{op.name.partition('.')[2]}: the box `{annotated(op, BoxAttr)}` is refused: {reason}",
        span=span,
        chain=chain,
    )
