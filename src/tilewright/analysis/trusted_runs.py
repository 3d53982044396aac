"""Whether equal neighbours of a tile, as axis facts have them, are equal whatever wraps around."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.ranges import Ranges
from tilewright.ir.op import ViewOp
from tilewright.ir.types import shape_of
from tilewright.support.deep_calls import with_room

_QUOTIENTS = ("arith.divsi", "arith.remsi")
_ADDED = ("tt.addptr", *(f"arith.{name}" for name in ("addi", "subi", "extsi")))
_INDEXING = (*_ADDED, *_QUOTIENTS, "arith.muli")


class TrustedRuns:
    """Whether neighbours that axis facts call equal are, whatever wraps around on the way to them.

    Of a quotient facts assume that nothing is negative, as of an address: -8 to -1 by 8 are no one
    number. That is true of what is seen not to be, and does no harm where the number is added to an
    address as it is: no array is that far away. Behind a mask of bits, or times a power of two that
    wraps around once more, it may be any other. A mask may divide what its own pointers are
    computed from, of which their contiguity assumes the same.
    """

    def __init__(self) -> None:
        self._ranges = Ranges()
        self._known: dict[tuple[SSAValue, int, bool], bool] = {}

    def of_address(self, pointers: SSAValue, dim: int) -> bool:
        """Of pointers along a dim."""
        return self._of(pointers, dim, True)

    def of_number(self, value: SSAValue, dim: int) -> bool:
        """Of a number that may be used in any way, along a dim."""
        return self._of(value, dim, False)

    def of_mask(self, mask: SSAValue, pointers: SSAValue, dim: int) -> bool:
        """Of the mask of an access along a dim."""
        return self.of_number(mask, dim) or self._is_of(mask, _indices_of(pointers))

    def _of(self, value: SSAValue, dim: int, is_address: bool) -> bool:
        key = value, dim, is_address
        if key not in self._known:
            self._known[key] = with_room(lambda: self._follows(value, dim, is_address))
        return self._known[key]

    def _follows(self, value: SSAValue, dim: int, is_address: bool) -> bool:
        op = value.owner
        if not isinstance(op, Operation) or not shape_of(value.type):
            return True
        if isinstance(op, ViewOp):
            (source,) = op.operands
            along = [d for d, to in enumerate(op.source_dims()) if to == dim]
            varies = bool(along) and shape_of(source.type)[along[0]] > 1
            return not varies or self._of(source, along[0], is_address)
        if self._may_be_negative(op) and not (is_address and op.name == "arith.divsi"):
            return False
        is_added = op.name in _ADDED or op.name in _QUOTIENTS
        return all(self._in(op, operand, dim, is_address and is_added) for operand in op.operands)

    def _in(self, op: Operation, operand: SSAValue, dim: int, is_address: bool) -> bool:
        """Of an operand, along all dims where another shape does not say which is which."""
        shape = shape_of(operand.type)
        if shape == shape_of(op.results[0].type):
            return self._of(operand, dim, is_address)
        return all(self._of(operand, each, is_address) for each in range(len(shape)))

    def _may_be_negative(self, op: Operation) -> bool:
        return op.name in _QUOTIENTS and not self._ranges.is_nonnegative(op.operands[0])

    def _is_of(self, mask: SSAValue, indices: set[SSAValue]) -> bool:
        """Whether each number that may be negative and is divided for a mask is in an address."""
        seen, pending = {mask}, [mask]
        while pending:
            op = pending.pop().owner
            if not isinstance(op, Operation):
                continue
            if self._may_be_negative(op) and not _is_quotient_of(op.operands[0], indices):
                return False
            new = [v for v in op.operands if shape_of(v.type) and v not in seen]
            seen.update(new)
            pending += new
        return True


def _indices_of(pointers: SSAValue) -> set[SSAValue]:
    """The tiles that pointers are sums, products, quotients and remainders of, in any shape."""
    seen, pending = {pointers}, [pointers]
    while pending:
        op = pending.pop().owner
        if isinstance(op, ViewOp) or (isinstance(op, Operation) and op.name in _INDEXING):
            new = [v for v in op.operands if shape_of(v.type) and v not in seen]
            seen.update(new)
            pending += new
    return seen


def _is_quotient_of(value: SSAValue, indices: set[SSAValue]) -> bool:
    """Whether a value is one of some, or a quotient or remainder of one, over and over."""
    while value not in indices:
        op = value.owner
        if not isinstance(op, ViewOp) and not (isinstance(op, Operation) and op.name in _QUOTIENTS):
            return False
        value = op.operands[0]
    return True
