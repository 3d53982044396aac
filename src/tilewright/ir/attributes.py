"""Attributes of the tile IR that are not types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition

if TYPE_CHECKING:  # a compile neither parses nor prints
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


@irdl_attr_definition
class FastMathAttr(Data[tuple[str, ...]]):
    """The flags under which a float op may change bits, as `#arith.fastmath<contract>`."""

    name = "arith.fastmath"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            flags = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_identifier
            )
        return tuple(flag for flag in flags if flag != "none")

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_string(",".join(self.data) or "none")


CONTRACT = FastMathAttr(("contract",))
RECIPROCAL = FastMathAttr(("arcp",))
APPROXIMATE = FastMathAttr(("afn",))


def integer_array(values: Sequence[int]) -> Attribute:
    """A list of integers as a property: `array<i32: …>`."""
    return DenseArrayBase.from_list(i32, values)


def integers_of(attribute: Attribute | None) -> tuple[int, ...]:
    """The integers of an `array<i32: …>` property; () without one."""
    if attribute is None:
        return ()
    assert isinstance(attribute, DenseArrayBase)
    values: Sequence[int | float] = cast("Any", attribute).get_values()
    return tuple(int(value) for value in values)
