"""Integers as polynomials of scalars: sums of integer multiples of products of scalars.

A scalar is a value of the program: an argument, a program id, a loop's counter, a quotient, a
minimum. What an expression is made of is whole and 64 bits wide: no sum in it wraps. One that was
computed in fewer bits is *assumed*: it holds unless signed index arithmetic of 32 bits overflowed.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.support.dataclass import dataclass, replace

MAX_TERMS = 32
"""The terms of an expression that is worth having; a square of a square of a sum has hundreds."""
MAX_FACTORS = 8
Factors = tuple[SSAValue, ...]
Term = tuple[int, Factors]


@dataclass(frozen=True)
class Expression:
    """A sum of integer multiples of products of scalars; see the module.

    Terms and factors stand in the order in which they were first met. *Constraints*: no
    coefficient is zero, no two terms have the same factors. Two expressions are one number where
    their difference `is_zero`.
    """

    terms: tuple[Term, ...] = ()
    is_assumed: bool = False

    def is_zero(self) -> bool:
        """Whether this is the integer 0."""
        return not self.terms

    def as_int(self) -> int | None:
        """The integer that this is, where it is one."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][1]:
            return self.terms[0][0]
        return None

    @property
    def degree(self) -> int:
        """The most scalars in a product."""
        return max((len(factors) for _, factors in self.terms), default=0)

    def is_large(self) -> bool:
        """Whether this has more terms or factors than are worth having."""
        return len(self.terms) > MAX_TERMS or self.degree > MAX_FACTORS

    def is_large_with(self, other: Expression) -> bool:
        """Whether the product with another expression could be large."""
        if not self.terms or not other.terms:
            return False
        num_terms = len(self.terms) * len(other.terms)
        return num_terms > MAX_TERMS or self.degree + other.degree > MAX_FACTORS

    def symbols(self) -> tuple[SSAValue, ...]:
        """The scalars in this, each once, in order."""
        return tuple(dict.fromkeys(symbol for _, factors in self.terms for symbol in factors))

    def plus(self, other: Expression, factor: int = 1) -> Expression:
        """self + factor · other."""
        if not other.terms:
            return self if self.is_assumed or not other.is_assumed else self.assumed()
        if not self.terms and factor == 1 and other.is_assumed >= self.is_assumed:
            return other
        merged = {factors: coefficient for coefficient, factors in self.terms}
        for coefficient, factors in other.terms:
            _add(merged, factors, factor * coefficient)
        return _of(merged, self.is_assumed or other.is_assumed)

    def minus(self, other: Expression) -> Expression:
        """self - other."""
        return self.plus(other, -1)

    def times(self, other: Expression) -> Expression:
        """self · other."""
        if other is ONE:
            return self
        merged: dict[Factors, int] = {}
        for left, left_factors in self.terms:
            for right, right_factors in other.terms:
                _add(merged, (*left_factors, *right_factors), left * right)
        return _of(merged, self.is_assumed or other.is_assumed)

    def scaled(self, factor: int) -> Expression:
        """factor · self."""
        return self.times(integer(factor))

    def divided_by(self, divisor: Expression) -> Expression | None:
        """The expression whose product with `divisor` this is; None where there is none.

        *Constraints*: a divisor of several terms divides its integer multiples only.
        """
        if self.is_zero():
            return self
        if len(divisor.terms) != 1:
            return self._multiple_of(divisor)
        by, factors = divisor.terms[0]
        terms: list[Term] = []
        for coefficient, own in self.terms:
            rest = _without(own, factors)
            if rest is None or coefficient % by:
                return None
            terms.append((coefficient // by, rest))
        return Expression(tuple(terms), self.is_assumed or divisor.is_assumed)

    def _multiple_of(self, divisor: Expression) -> Expression | None:
        if divisor.is_zero() or len(divisor.terms) != len(self.terms):
            return None
        count, rest = divmod(self.terms[0][0], divisor.terms[0][0])
        quotient = integer(count) if not rest else ZERO
        is_exact = self.minus(divisor.times(quotient)).is_zero()
        return replace(quotient, is_assumed=self.is_assumed) if is_exact else None

    def assumed(self) -> Expression:
        """The same, unless index arithmetic overflows."""
        return self if self.is_assumed else Expression(self.terms, True)

    def reduced(self, bits: int) -> Expression:
        """The same number modulo `bits` bits: coefficients as signed numbers of them."""
        half = 1 << (bits - 1)
        if not self.terms or all(-half <= coefficient < half for coefficient, _ in self.terms):
            return self
        terms = (((c + half) % (2 * half) - half, factors) for c, factors in self.terms)
        return replace(self, terms=tuple((c, factors) for c, factors in terms if c))


ZERO = Expression()
ONE = Expression(((1, ()),))


def integer(value: int) -> Expression:
    """The expression that is one integer."""
    return Expression(((value, ()),)) if value else ZERO


def symbol(value: SSAValue) -> Expression:
    """The expression that is one scalar."""
    return Expression(((1, (value,)),))


def _of(merged: dict[Factors, int], is_assumed: bool) -> Expression:
    return Expression(tuple((c, factors) for factors, c in merged.items() if c), is_assumed)


def _add(merged: dict[Factors, int], factors: Factors, coefficient: int) -> None:
    """Add a term; factors in another order are the same product."""
    if factors not in merged and len(factors) > 1:
        same = (f for f in merged if len(f) == len(factors) and _without(f, factors) == ())
        factors = next(same, factors)
    merged[factors] = merged.get(factors, 0) + coefficient


def _without(factors: Factors, taken: Factors) -> Factors | None:
    """A product divided by another one; None where it is no multiple."""
    rest = list(factors)
    for factor in taken:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)
