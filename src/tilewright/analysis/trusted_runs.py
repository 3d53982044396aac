"""Whether equal neighbours of a tile, as axis facts have them, are equal whatever wraps around."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.ranges import Ranges
from tilewright.ir.op import ViewOp
from tilewright.ir.types import shape_of
from tilewright.support.deep_calls import with_room

_QUOTIENTS = ("arith.divsi", "arith.remsi")
_ADDED = ("tt.addptr", *(f"arith.{name}" for name in ("addi", "subi", "extsi")))


class TrustedRuns:
    """Whether neighbours that axis facts call equal are, whatever wraps around on the way to them.

    Of a quotient facts assume that nothing is negative, as of an address: -8 to -1 by 8 are no one
    number. That is true of what is seen not to be, and does no harm where the number is added to an
    address as it is: no array is that far away. Behind a mask of bits, or times a power of two that
    wraps around once more, it may be any other.
    """

    def __init__(self) -> None:
        self._ranges = Ranges()
        self._known: dict[tuple[SSAValue, bool], bool] = {}

    def of_address(self, value: SSAValue) -> bool:
        """Of a pointer, or of an index that is one's part as it is."""
        return self._of(value, True)

    def of_number(self, value: SSAValue) -> bool:
        """Of a number that may be used in any way."""
        return self._of(value, False)

    def _of(self, value: SSAValue, is_address: bool) -> bool:
        key = value, is_address
        if key not in self._known:
            self._known[key] = with_room(lambda: self._follows(value, is_address))
        return self._known[key]

    def _follows(self, value: SSAValue, is_address: bool) -> bool:
        op = value.owner
        if not isinstance(op, Operation) or not shape_of(value.type):
            return True
        is_quotient = op.name in _QUOTIENTS
        may_be_negative = is_quotient and not self._ranges.is_nonnegative(op.operands[0])
        if may_be_negative and not (is_address and op.name == "arith.divsi"):
            return False
        is_added = isinstance(op, ViewOp) or op.name in _ADDED or is_quotient
        return all(self._of(operand, is_address and is_added) for operand in op.operands)
