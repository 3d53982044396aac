"""Attributes of the tile IR that are not types."""

from __future__ import annotations

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class FastMathAttr(Data[tuple[str, ...]]):
    """The flags under which a float op may change bits, as `#arith.fastmath<contract>`."""

    name = "arith.fastmath"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        with parser.in_angle_brackets():
            flags = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_identifier
            )
        return tuple(flag for flag in flags if flag != "none")

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(",".join(self.data) or "none")


CONTRACT = FastMathAttr(("contract",))
