"""How a tile changes along one dimension: from end to end, and in groups; see `affine.tile`."""

from __future__ import annotations

from math import gcd

from xdsl.ir import SSAValue

from tilewright.analysis.affine.expression import ZERO, Expression, integer
from tilewright.analysis.affine.stride import STILL, Stride
from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class Wrap:
    """Index i gives scale · ((start + step · i) mod modulus), the sign that of the dividend."""

    start: Expression
    step: Expression
    modulus: Expression
    scale: Expression


@dataclass(frozen=True)
class Lookup:
    """Index i gives scale · indices[i]; `indices` is a tile of one dimension."""

    indices: SSAValue
    scale: Expression


WHOLE = 0
"""The length of groups as far as the stride tells: of one from end to end, or of one element."""


@dataclass(frozen=True)
class Along:
    """How a tile changes along one dimension.

    `stride` is None where none holds from end to end. `start` is what the dimension adds at index
    0; None where that is not known. `form` says more where the dimension is not plainly affine, and
    then gives its part in place of the stride. `step` and `length` are those of the groups; a group
    of one element has step 0.
    """

    stride: Stride | None
    start: Expression | None = ZERO
    form: Wrap | Lookup | None = None
    step: Expression = ZERO
    length: int = WHOLE

    def is_still(self) -> bool:
        """Whether all elements along the dimension are equal."""
        return self.stride is not None and self.stride.is_zero()

    def is_exact(self) -> bool:
        """Whether a stride holds from end to end."""
        return self.stride is not None and not self.stride.jumps

    def is_linear(self) -> bool:
        """Whether start and stride say all."""
        return self.is_exact() and self.start is not None and self.form is None

    def equal(self) -> int:
        """The length of groups of equal elements."""
        return 1 if self.step.terms else self.length

    def adjacent(self) -> int:
        """The length of groups of consecutive elements."""
        return self.length if self.step.as_int() == 1 else 1

    def plus(self, other: Along, sign: int = 1) -> Along:
        """The sum of two values along a dimension."""
        start = total(self.start, other.start, sign)
        if other.is_still():
            return Along(self.stride, start, self.form, self.step, self.length)
        stride = None
        if self.stride is not None and other.stride is not None:
            stride = self.stride.plus(other.stride, sign)
        form, is_sum = None, self.is_linear() and other.is_linear()
        if self.is_still():
            form, is_sum = other.form if sign > 0 else scaled_form(other.form, integer(-1)), True
        length = gcd(self.length, other.length)
        step = ZERO
        if stride is not None and not stride.jumps:
            step = stride.value
        elif length > 1:
            sum_of_steps = total(self.step, other.step, sign)
            step, length = (ZERO, 1) if sum_of_steps is None else (sum_of_steps, length)
        return Along(stride, start if is_sum else None, form, step, length)

    def shared_with(self, other: Along) -> tuple[Expression, int]:
        """The longest groups in which both go by the same step."""
        length = gcd(self.length, other.length)
        alike = length > 1 and self.step.minus(other.step).is_zero()
        return (self.step, length) if alike else (ZERO, 1)

    def times(self, factor: Expression) -> Along:
        """The product with the same number everywhere."""
        if factor.is_zero():
            return AT_REST
        stride = None if self.stride is None else self.stride.times(factor)
        start = None if self.start is None else self.start.times(factor)
        step = self.step
        if stride is not None and self.stride is not None and self.stride.value == step:
            step = stride.value
        elif step.terms:
            step = step.times(factor)
        return Along(stride, start, scaled_form(self.form, factor), step, self.length)

    def is_large_with(self, factor: Expression) -> bool:
        """Whether the product with a number could be large (`Expression.is_large`)."""
        parts = [None if self.stride is None else self.stride.value, self.start, self.step]
        parts.append(None if self.form is None else self.form.scale)
        return any(part is not None and part.is_large_with(factor) for part in parts)

    def assumed(self) -> Along:
        """The same, unless index arithmetic overflows."""
        stride = None if self.stride is None else self.stride.assumed()
        form = None if self.form is None else replace(self.form, scale=self.form.scale.assumed())
        start = self.start
        if start is not None and start.as_int() is None:
            start = start.assumed()
        step = self.step.assumed() if self.step.terms else self.step
        return Along(stride, start, form, step, self.length)

    def split(self, scale: int) -> Along:
        """Every element at a multiple of `scale`; of what is not linear only the stride is kept."""
        stride = None if self.stride is None else self.stride.times(integer(scale))
        return Along(stride, self.start if self.is_linear() else None)

    def grouped(self, step: Expression, length: int) -> Along:
        """The same with other groups."""
        return replace(self, step=step, length=length)


AT_REST = Along(STILL)
"""A dimension along which nothing changes, and that adds nothing."""
GENERAL = Along(None, None)
"""A dimension of which nothing is known."""
SOME = Along(STILL, None)
"""A dimension along which nothing changes."""


def in_groups(length: int, extent: int, step: Expression = ZERO) -> Along:
    """A dimension of which a step in groups of so many elements is known."""
    if length == extent:
        return Along(Stride(step), None, None, step, length)
    return Along(None, None, None, step, length)


def total(left: Expression | None, right: Expression | None, sign: int) -> Expression | None:
    """left ± right; None where either is not known, or the sum is large."""
    if left is None or right is None:
        return None
    found = left.plus(right, sign)
    return None if found.is_large() else found


def scaled_form(form: Wrap | Lookup | None, factor: Expression) -> Wrap | Lookup | None:
    """A form with every element so many times as large."""
    return None if form is None else replace(form, scale=form.scale.times(factor))
