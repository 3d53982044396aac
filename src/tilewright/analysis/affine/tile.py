"""What a tile of integers or pointers holds: a start, and a change along each dimension.

Element [i₀, i₁, …] of a tile is

    base + rest + Σ_d (start_d + stride_d · i_d)

where a dimension may instead *wrap*, scale · ((start + step · i) mod modulus), or be *looked up*,
scale · indices[i]. Which dimension a part of the start belongs to is as the author wrote it: what
was added to `arange` before it was laid along a dimension belongs to that dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from tilewright.analysis.affine.expression import ZERO, Expression, integer
from tilewright.analysis.affine.stride import STILL, Stride
from tilewright.ir.types import is_integer, width_bits
from tilewright.support.dataclass import dataclass, replace

Strides = tuple[Stride | None, ...]


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


@dataclass(frozen=True)
class Along:
    """How a tile changes along one dimension.

    `stride` is None where nothing is known of it. `start` is what the dimension adds at index 0;
    None where that is not known. `form` says more where the dimension is not plainly affine, and
    then gives its part in place of the stride.
    """

    stride: Stride | None
    start: Expression | None = ZERO
    form: Wrap | Lookup | None = None

    def is_still(self) -> bool:
        """Whether all elements along the dimension are equal."""
        return self.stride is not None and self.stride.is_zero()

    def is_linear(self) -> bool:
        """Whether start and stride say all."""
        is_affine = self.stride is not None and not self.stride.jumps
        return is_affine and self.start is not None and self.form is None

    def plus(self, other: Along, sign: int = 1) -> Along:
        """The sum of two values along a dimension."""
        if other.is_still():
            return Along(self.stride, total(self.start, other.start, sign), self.form)
        stride = None
        if self.stride is not None and other.stride is not None:
            stride = self.stride.plus(other.stride, sign)
        if self.is_still():
            form = other.form if sign > 0 else _scaled_form(other.form, integer(-1))
            return Along(stride, total(self.start, other.start, sign), form)
        if self.is_linear() and other.is_linear():
            return Along(stride, total(self.start, other.start, sign))
        return Along(stride, None)

    def times(self, factor: Expression) -> Along:
        """The product with the same number everywhere."""
        if factor.is_zero():
            return AT_REST
        stride = None if self.stride is None else self.stride.times(factor)
        start = None if self.start is None else self.start.times(factor)
        return Along(stride, start, _scaled_form(self.form, factor))

    def is_large_with(self, factor: Expression) -> bool:
        """Whether the product with a number could be large (`Expression.is_large`)."""
        parts = [None if self.stride is None else self.stride.value, self.start]
        parts.append(None if self.form is None else self.form.scale)
        return any(part is not None and part.is_large_with(factor) for part in parts)

    def assumed(self) -> Along:
        """The same, unless index arithmetic overflows."""
        stride = None if self.stride is None else self.stride.assumed()
        form = None if self.form is None else replace(self.form, scale=self.form.scale.assumed())
        start = self.start
        if start is not None and start.as_int() is None:
            start = start.assumed()
        return Along(stride, start, form)

    def split(self, scale: int) -> Along:
        """Every element at a multiple of `scale`; of what is not linear only the stride is kept."""
        if self.is_linear():
            assert self.stride is not None
            return replace(self, stride=self.stride.times(integer(scale)))
        stride = None if self.stride is None else self.stride.times(integer(scale))
        return Along(stride, None)


AT_REST = Along(STILL)
"""A dimension along which nothing changes, and that adds nothing."""
GENERAL = Along(None, None)
"""A dimension of which nothing is known."""
SOME = Along(STILL, None)
"""A dimension along which nothing changes."""


@dataclass(frozen=True)
class AffineTile:
    """What is known of a tile; see the module.

    `base` is the scalar pointer that a tile of pointers starts from. `rest` is the part of the
    start that belongs to no dimension; None where the start is not known.
    """

    dims: tuple[Along, ...]
    rest: Expression | None = ZERO
    base: SSAValue | None = None

    @property
    def strides(self) -> Strides:
        """The stride of each dimension; None where it is general."""
        return tuple(along.stride for along in self.dims)

    def start(self) -> Expression | None:
        """The element at index 0 in every dimension; None where that is not known."""
        start = self.rest
        for along in self.dims:
            if start is None or along.form is not None:
                return None
            start = total(start, along.start, 1)
        return start

    def uniform(self) -> Expression | None:
        """The one number that every element is; None where that is not known."""
        return self.start() if all(along.is_still() for along in self.dims) else None

    def moving(self, shape: Sequence[int]) -> list[int]:
        """The dimensions along which a tile of this shape has unequal elements."""
        return [d for d, along in enumerate(self.dims) if shape[d] > 1 and not along.is_still()]


def unknown(rank: int) -> AffineTile:
    """A tile of which nothing is known."""
    return AffineTile((GENERAL,) * rank, None)


def uniform_tile(rank: int, value: Expression | None, base: SSAValue | None = None) -> AffineTile:
    """A tile that holds one number everywhere; None: a number that is not known."""
    return AffineTile((AT_REST,) * rank, value, base)


def in_type(tile: AffineTile, shape: tuple[int, ...], type_: Attribute) -> AffineTile:
    """A computed tile as one of its type: dimensions of one element do not move, bits are few.

    What is added everywhere belongs to the one dimension that has elements, where there is one.
    """
    bits = width_bits(type_) if is_integer(type_) else 0
    dims = [_in_type(along, size, bits) for along, size in zip(tile.dims, shape, strict=True)]
    rest = tile.rest
    if rest is not None and rest.terms:
        rest = rest if bits < 2 else rest.reduced(bits)
        extended = [d for d, size in enumerate(shape) if size > 1] if len(shape) > 1 else [0]
        if len(extended) == 1:
            along = dims[extended[0]]
            start = total(along.start, rest, 1)
            dims[extended[0]] = Along(along.stride, start, along.form)
            rest = ZERO
    return AffineTile(tuple(dims), rest, tile.base)


def _in_type(along: Along, size: int, bits: int) -> Along:
    if size == 1:
        return Along(STILL, along.start if along.form is None else None)
    if not bits or along.is_still():
        return along
    if bits == 1:
        return GENERAL
    stride = None if along.stride is None else along.stride.reduced(bits)
    start = None if along.start is None else along.start.reduced(bits)
    if (stride, start) == (along.stride, along.start):
        return along
    return Along(stride, start if along.form is None else None)


def total(left: Expression | None, right: Expression | None, sign: int) -> Expression | None:
    """left ± right; None where either is not known, or the sum is large."""
    if left is None or right is None:
        return None
    found = left.plus(right, sign)
    return None if found.is_large() else found


def _scaled_form(form: Wrap | Lookup | None, factor: Expression) -> Wrap | Lookup | None:
    return None if form is None else replace(form, scale=form.scale.times(factor))
