"""How much a value changes from one index to the next: a polynomial of scalars.

A change holds exactly, *but for jumps*, or *as assumed*:

* `(pid * B + arange) % M` wraps and `minimum(i, n)` saturates: each step is the stride, or the
  stride and a jump. Along a dimension all jumps go one way, so two elements that lie as far apart
  as the stride says have no jump between them; that is what a test at run time asks.
* 32-bit signed index arithmetic is assumed not to overflow where it gives addresses. A value that
  is computed with, rather than an address, must not rely on it.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.support.dataclass import dataclass, replace

Term = tuple[int, tuple[SSAValue, ...]]


@dataclass(frozen=True)
class Stride:
    """A sum of integer multiples of products of scalars, with how far it can be relied on."""

    terms: tuple[Term, ...] = ()
    jumps: bool = False
    is_assumed: bool = False

    def is_zero(self) -> bool:
        """Whether the value is constant along the dimension."""
        return not self.terms

    def as_int(self) -> int | None:
        """The stride where it is a compile-time integer."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][1]:
            return self.terms[0][0]
        return None

    def plus(self, other: Stride, sign: int = 1) -> Stride | None:
        """The stride of a sum (or difference) of two values; None where that is general.

        Jumps of two kinds could cancel, so that both ends of a run would hide its middle. And
        `i - i % 8` has no slope, but is not constant: it only jumps.
        """
        if not other.terms:
            return self
        if self.jumps and other.jumps:
            return None
        merged = {factors: coefficient for coefficient, factors in self.terms}
        for coefficient, factors in other.terms:
            merged[factors] = merged.get(factors, 0) + sign * coefficient
        return _checked(self._with(merged, other))

    def times(self, other: Stride) -> Stride:
        """The stride of a value times a constant polynomial."""
        if not other.terms:
            return ZERO
        merged: dict[tuple[SSAValue, ...], int] = {}
        for left, left_factors in self.terms:
            for right, right_factors in other.terms:
                factors = (*left_factors, *right_factors)
                merged[factors] = merged.get(factors, 0) + left * right
        return self._with(merged, other)

    def with_jumps(self) -> Stride:
        """The same stride, valid but for jumps."""
        return replace(self, jumps=True) if self.terms else self

    def assumed(self) -> Stride:
        """The same stride, valid unless index arithmetic overflows."""
        return replace(self, is_assumed=True) if self.terms else self

    def reduced(self, bits: int) -> Stride | None:
        """The stride of the same value in `bits` bits: coefficients as signed numbers of them."""
        half = 1 << (bits - 1)
        terms = tuple(((c + half) % (2 * half) - half, factors) for c, factors in self.terms)
        return _checked(replace(self, terms=tuple((c, factors) for c, factors in terms if c)))

    def _with(self, merged: dict[tuple[SSAValue, ...], int], other: Stride) -> Stride:
        terms = tuple((c, factors) for factors, c in merged.items() if c)
        return Stride(terms, self.jumps or other.jumps, self.is_assumed or other.is_assumed)


def _checked(stride: Stride) -> Stride | None:
    """A stride, or None where nothing is left of it but jumps or an assumption."""
    return None if not stride.terms and (stride.jumps or stride.is_assumed) else stride


ZERO = Stride()
ONE = Stride(((1, ()),))


def integer(value: int) -> Stride:
    """The polynomial that is one integer."""
    return Stride(((value, ()),)) if value else ZERO
