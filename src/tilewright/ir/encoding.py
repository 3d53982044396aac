"""Types of the laid-out levels: tiles with a layout, shared tiles, tokens.

A layout is the encoding of a `TensorType`; a tile in shared memory is a type of its own, since
it is a place and not a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from tilewright.ir.types import storage_bytes
from tilewright.layout.linear import LinearLayout
from tilewright.support.errors import InternalError

if TYPE_CHECKING:  # a compile neither parses nor prints
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


SLOT_ALIGNMENT_BYTES = 128
"""Where a slot of a shared tile may start: where the copy engine may write.

*Source*: PTX ISA 8.8, cp.async.bulk.tensor: where a box lies in shared memory."""


@irdl_attr_definition
class LayoutAttr(Data[LinearLayout]):
    """A linear layout, as `#ttg.linear<"…">`."""

    name = "ttg.linear"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LinearLayout:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            return LinearLayout.parse(parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.text())


@irdl_attr_definition
class SharedType(ParametrizedAttribute, TypeAttribute):
    """A tile in shared memory: `slots` copies of `shape` elements, each in `layout`.

    A view of a part of a tile is in the layout of the whole, which has a larger shape.
    """

    name = "ttg.memdesc"
    shape: ArrayAttr[IntAttr]
    element: Attribute
    layout: LayoutAttr
    slots: IntAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            extents = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_integer
            )
            parser.parse_punctuation(",")
            element = parser.parse_type()
            parser.parse_punctuation(",")
            layout = parser.parse_attribute()
            parser.parse_punctuation(",")
            slots = parser.parse_integer()
        return (ArrayAttr([IntAttr(e) for e in extents]), element, layout, IntAttr(slots))

    def print_parameters(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_string("[" + ", ".join(str(e) for e in self.extents()) + "], ")
            printer.print_attribute(self.element)
            printer.print_string(", ")
            printer.print_attribute(self.layout)
            printer.print_string(f", {self.slots.data}")

    def extents(self) -> tuple[int, ...]:
        """The shape of one slot."""
        return tuple(extent.data for extent in self.shape)

    def is_part(self) -> bool:
        """Whether it is a view of a part of a tile."""
        return self.extents() != self.layout.data.shape


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """What orders the asynchronous ops of one role; it lowers to a count."""

    name = "ttg.async.token"


TOKEN = TokenType()


@cache
def laid_out(element: Attribute, layout: LinearLayout) -> Attribute:
    """The interned type of a tile of `element` in `layout`; the bare element for rank 0."""
    if not layout.shape:
        return element
    return TensorType(element, layout.shape, _attribute(layout))


@cache
def shared_tile(element: Attribute, layout: LinearLayout, slots: int = 1) -> SharedType:
    """The interned type of `slots` shared tiles of `element` in `layout`."""
    shape = ArrayAttr([IntAttr(extent) for extent in layout.shape])
    return SharedType(shape, element, _attribute(layout), IntAttr(slots))


@cache
def shared_part(whole: SharedType, extents: tuple[int, ...]) -> SharedType:
    """The interned type of a view of `extents` elements of a shared tile."""
    shape = ArrayAttr([IntAttr(extent) for extent in extents])
    return SharedType(shape, whole.element, whole.layout, IntAttr(1))


@cache
def slot_bytes(type_: SharedType) -> int:
    """The bytes from one slot of a shared tile to the next; of a tile of one slot its size."""
    size = type_.layout.data.size("offset") * storage_bytes(type_.element)
    return size if type_.slots.data == 1 else slot_step(size)


def slot_step(size_bytes: int) -> int:
    """The bytes between the starts of slots that hold tiles of a size: each starts aligned."""
    return -(-size_bytes // SLOT_ALIGNMENT_BYTES) * SLOT_ALIGNMENT_BYTES


@cache
def _attribute(layout: LinearLayout) -> LayoutAttr:
    return LayoutAttr(layout)


def has_layout(type_: Attribute) -> bool:
    """Whether a type is a tile with a layout."""
    return isinstance(type_, TensorType) and not isinstance(type_.encoding, NoneAttr)


def layout_of(type_: Attribute) -> LinearLayout:
    """The layout of a laid-out tile or of a shared tile."""
    if isinstance(type_, SharedType):
        return type_.layout.data
    if isinstance(type_, TensorType) and isinstance(type_.encoding, LayoutAttr):
        return type_.encoding.data
    raise InternalError(f"{type_} has no layout")
