"""How much a value changes from one index to the next: an expression, and where it holds.

A change holds exactly, *but for jumps*, or *as assumed*:

* `(pid * B + arange) % M` wraps and `minimum(i, n)` saturates: each step is the stride, or the
  stride and a jump. Where the first two and the last two elements of a run lie as far apart as
  the stride says, no jump is between them; that is what a test at run time asks.
* 32-bit signed index arithmetic is assumed not to overflow where it gives addresses. A value that
  is computed with, rather than an address, must not rely on it.
"""

from __future__ import annotations

from tilewright.analysis.affine.expression import ONE, Expression, Term
from tilewright.analysis.affine.expression import ZERO as NOTHING
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Stride:
    """How much a value changes from index to index, and whether it jumps besides."""

    value: Expression = NOTHING
    jumps: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the change."""
        return self.value.terms

    @property
    def is_assumed(self) -> bool:
        """Whether the change holds only unless index arithmetic overflows."""
        return self.value.is_assumed

    def is_zero(self) -> bool:
        """Whether the value is constant along the dimension."""
        return not self.value.terms

    def as_int(self) -> int | None:
        """The stride where it is a compile-time integer."""
        return self.value.as_int()

    def plus(self, other: Stride, sign: int = 1) -> Stride | None:
        """The stride of a sum (or difference) of two values; None where that is general.

        Jumps of two kinds could cancel, so that both ends of a run would hide its middle. And
        `i - i % 8` has no slope, but is not constant: it only jumps.
        """
        if other.is_zero():
            return self
        if self.jumps and other.jumps:
            return None
        value = self.value.plus(other.value, sign)
        return None if value.is_large() else _checked(Stride(value, self.jumps or other.jumps))

    def times(self, factor: Expression) -> Stride:
        """The stride of a value times the same number everywhere."""
        return STILL if factor.is_zero() else Stride(self.value.times(factor), self.jumps)

    def with_jumps(self) -> Stride:
        """The same stride, valid but for jumps."""
        return self if self.is_zero() else Stride(self.value, True)

    def assumed(self) -> Stride:
        """The same stride, valid unless index arithmetic overflows."""
        return self if self.is_zero() else Stride(self.value.assumed(), self.jumps)

    def reduced(self, bits: int) -> Stride | None:
        """The stride of the same value in `bits` bits: coefficients as signed numbers of them."""
        value = self.value.reduced(bits)
        return self if value is self.value else _checked(Stride(value, self.jumps))


def _checked(stride: Stride) -> Stride | None:
    """A stride, or None where nothing is left of it but jumps or an assumption."""
    return None if stride.is_zero() and (stride.jumps or stride.is_assumed) else stride


STILL = Stride()
UNIT = Stride(ONE)
