"""The boxes in which the copy engine moves a block, as an attribute of the access and of its map.

    "tt.descriptor_load"(%map, %i, %j) {ttng.box = #ttng.box<"64x64, swizzle 128">}

`select-tensor-maps` decides it, or obeys one that is there; staging, the map and emission read it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xdsl.ir import Data, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition

from tilewright.ir.locations import span_of
from tilewright.ir.types import DescriptorType, shape_of, storage_bytes
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanMissing, PlanRefused
from tilewright.targets.nvidia.tma.boxes import BoxPlan, box_reason

if TYPE_CHECKING:  # a compile neither parses nor prints
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

BOX = "ttng.box"
"""The attribute of an access through a tensor map, and of the map, that holds its boxes."""
_TEXT = re.compile(r"(?P<box>\d+(?:x\d+)*), swizzle (?P<swizzle>\d+)")


@dataclass(frozen=True)
class Box:
    """The extents of a box, and the bytes of the swizzle in which it lies in shared memory."""

    extents: tuple[int, ...]
    swizzle_bytes: int

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.extents))}, swizzle {self.swizzle_bytes}"


@irdl_attr_definition
class BoxAttr(Data[Box]):
    """The boxes of a block, as `#ttng.box<"64x64, swizzle 128">`."""

    name = "ttng.box"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Box:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
        match = _TEXT.fullmatch(text)
        if match is None:
            parser.raise_error(f"`{text}` is no box, such as `64x64, swizzle 128`")
        return Box(tuple(map(int, match["box"].split("x"))), int(match["swizzle"]))

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


def annotated_box(op: Operation) -> Box | None:
    """The box that is annotated on an access or a map; None before it is decided."""
    attribute = op.attributes.get(BOX)
    return attribute.data if isinstance(attribute, BoxAttr) else None


def annotate_box(op: Operation, plan: BoxPlan) -> None:
    """Write the boxes of a block on an access or a map."""
    op.attributes[BOX] = BoxAttr(Box(plan.box, plan.swizzle_bytes))


def copy_box(source: Operation, target: Operation) -> None:
    """Write the box of an access on what becomes of it."""
    target.attributes[BOX] = source.attributes[BOX]


def box_plan(op: Operation, desc: SSAValue) -> BoxPlan:
    """The boxes of an access or a map, whose descriptor is `desc`. *Raises*: PlanMissing."""
    box = annotated_box(op)
    if box is None:
        span, chain = span_of(op)
        raise PlanMissing(
            f"{op.name} is rewritten before it is planned: it has no `{BOX}`",
            hint="run `select-tensor-maps` first, or annotate it",
            span=span,
            chain=chain,
        )
    assert isinstance(desc.type, DescriptorType)
    block = desc.type.block
    return BoxPlan(shape_of(block), storage_bytes(block), box.swizzle_bytes, box.extents)


def given_boxes(op: Operation, shape: tuple[int, ...], element_bytes: int) -> BoxPlan | None:
    """The boxes that someone annotated on an access; None where nobody did.

    *Raises*: PlanRefused for boxes that the engine does not move.
    """
    box = annotated_box(op)
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
        f"{op.name.partition('.')[2]}: the box `{annotated_box(op)}` is refused: {reason}",
        span=span,
        chain=chain,
    )
