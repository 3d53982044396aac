"""What a tile of integers or pointers holds: a start, and a change along each dimension.

Element [i₀, i₁, …] of a tile is

    base + rest + Σ_d (start_d + stride_d · i_d)

where a dimension may instead *wrap*, scale · ((start + step · i) mod modulus), or be *looked up*,
scale · indices[i]. Which dimension a part of the start belongs to is as the author wrote it: what
was added to `arange` before it was laid along a dimension belongs to that dimension.

Where no stride holds from end to end, one may still hold in *groups* of `length` elements, the
first of them at index 0: each element is its predecessor plus `step`. Groups divide the extent, and
of the first element of each a *divisor* is known, a power of two. Divisors of pointers count bytes,
all else counts elements.

    16 + arange(0, 64)        stride 1: one group of 64, divisor 16
    arange(0, 64) // 8        no stride; step 0 in groups of 8, divisor 1
    arange(0, 64) % 8 * 4     stride 4 but for jumps; step 4 in groups of 8, divisor EVERY
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd

from xdsl.ir import Attribute, SSAValue

from tilewright.analysis.affine.along import AT_REST, GENERAL, WHOLE, Along, total
from tilewright.analysis.affine.expression import ZERO, Expression, integer
from tilewright.analysis.affine.stride import STILL, Stride
from tilewright.ir.types import (
    PointerType,
    element_of,
    is_integer,
    shape_of,
    storage_bytes,
    width_bits,
)
from tilewright.support.dataclass import dataclass, replace

EVERY = 1 << 62
"""The divisor of zero, and of what is a multiple of more than matters."""
Strides = tuple[Stride | None, ...]


@dataclass(frozen=True)
class Kind:
    """What a type says of a tile: its shape, the bits of an integer, else 0, and its unit.

    The `unit` is what elements that differ by one differ by: the bytes of an element for a pointer,
    else 1.
    """

    shape: tuple[int, ...]
    bits: int
    unit: int = 1

    def with_shape(self, type_: Attribute) -> Kind:
        """The kind of a tile of the same elements in another shape."""
        return Kind(shape_of(type_), self.bits, self.unit)


NUMBER = Kind((), 64)
"""An integer of 64 bits."""


def kind_of(type_: Attribute) -> Kind:
    """What a type says of a tile or scalar."""
    element = element_of(type_)
    unit = storage_bytes(element.pointee) if isinstance(element, PointerType) else 1
    return Kind(shape_of(type_), width_bits(type_) if is_integer(type_) else 0, unit)


@dataclass(frozen=True)
class AffineTile:
    """What is known of a tile; see the module. A scalar has no dimensions, and one group.

    `base` is the scalar pointer that a tile of pointers starts from. `rest` is the part of the
    start that belongs to no dimension; None where the start is not known. `divisors` has one for
    the first elements of the groups along each dimension, and `divisor` is one of every element.
    `is_nonnegative` is of signed integers.
    """

    dims: tuple[Along, ...]
    rest: Expression | None = ZERO
    base: SSAValue | None = None
    kind: Kind = NUMBER
    divisors: tuple[int, ...] = ()
    divisor: int = 1
    is_nonnegative: bool = False

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
        start = self.start() if all(along.is_still() for along in self.dims) else None
        return start.reduced(self.kind.bits) if start is not None and self.kind.bits else start

    @property
    def constant(self) -> int | None:
        """The integer that every element is; None where that is not known, and of pointers."""
        found = self.uniform() if self.kind.bits else None
        return None if found is None else found.as_int()

    @property
    def contiguity(self) -> tuple[int, ...]:
        """Per dimension the length of groups of consecutive elements."""
        return tuple(along.adjacent() for along in self.dims)

    @property
    def constancy(self) -> tuple[int, ...]:
        """Per dimension the length of groups of equal elements."""
        return tuple(along.equal() for along in self.dims)

    @property
    def divisibility(self) -> tuple[int, ...]:
        """Per dimension a divisor of the first element of each group of consecutive ones."""
        return tuple(self.divisor_at(d, along.adjacent()) for d, along in enumerate(self.dims))

    def divisor_at(self, dim: int, index: int) -> int:
        """A divisor of every element whose index along `dim` is a multiple of `index`."""
        if index == 1 or not self.dims:
            return self.divisor
        own = _inside(self.dims[dim], self.divisors[dim], index, self.kind.unit)
        return max(own, self.divisor)

    def is_constant_along(self, dim: int) -> bool:
        """Whether all elements along `dim` are equal, as far as groups tell."""
        return self.dims[dim].equal() == self.kind.shape[dim]

    def aligned_run(self, dim: int) -> int:
        """Elements of the longest run of a power of two that starts at a multiple of itself.

        Such a run crosses no multiple of a larger power of two, zero and overflow included.
        """
        run = power_of_two(self.dims[dim].adjacent())
        return min(run, self.divisor_at(dim, run) // self.kind.unit or 1)


Divisor = Callable[[int, int], int]
"""A divisor of the elements whose index along a dimension is a multiple of a run."""
Divisors = tuple[tuple[int, ...], int]
"""The divisors of a tile's groups, and one of every element."""


def least_of(left: AffineTile, right: AffineTile, unit: int = 1) -> Divisor | int:
    """What divides a tile and `unit` times another one."""
    if max(left.divisors) == 1 or max(right.divisors) * unit == 1:
        return 1
    return lambda d, run: min(left.divisor_at(d, run), right.divisor_at(d, run) * unit)


def made(
    kind: Kind,
    dims: Iterable[Along],
    rest: Expression | None,
    divisor: Divisor | Divisors | int = 1,
    *,
    base: SSAValue | None = None,
    is_nonnegative: bool = False,
) -> AffineTile:
    """A computed tile as one of its type: dimensions of one element do not move, bits are few.

    What is added everywhere belongs to the one dimension that has elements, where there is one.
    """
    sizes, bits = kind.shape, kind.bits
    settled = [_settled(along, size, bits) for along, size in zip(dims, sizes, strict=True)]
    if rest is not None and rest.terms and bits == 1:
        # Of sums of truth values nothing is known but what they are made of.
        rest = rest if rest.as_int() in (None, 1, -1) else None
    elif rest is not None and rest.terms:
        rest = rest.reduced(bits) if bits else rest
    if settled and rest is not None and rest.terms:
        extended = [d for d, size in enumerate(sizes) if size > 1] if len(sizes) > 1 else [0]
        if len(extended) == 1:
            along = settled[extended[0]]
            start = total(along.start, rest, 1)
            settled[extended[0]] = Along(along.stride, start, along.form, along.step, along.length)
            rest = ZERO
    found = tuple(settled)
    return AffineTile(found, rest, base, kind, *_divided(kind, found, divisor), is_nonnegative)


def divided(tile: AffineTile, divisor: Divisor | Divisors | int) -> AffineTile:
    """A tile with these divisors of its elements."""
    divisors, every = _divided(tile.kind, tile.dims, divisor)
    return replace(tile, divisors=divisors, divisor=every)


def _divided(kind: Kind, dims: tuple[Along, ...], divisor: Divisor | Divisors | int) -> Divisors:
    if isinstance(divisor, tuple):
        return divisor
    if isinstance(divisor, int):
        least = min(divisor, EVERY)
        return (least,) * (len(dims) or 1), least
    if not dims:
        least = min(divisor(0, 1), EVERY)
        return (least,), least
    divisors = tuple([min(divisor(d, along.length), EVERY) for d, along in enumerate(dims)])
    every = [_inside(a, own, 1, kind.unit) for a, own in zip(dims, divisors, strict=True)]
    return divisors, min(EVERY, max(divisor(0, 1), *every))


def _inside(along: Along, own: int, index: int, unit: int) -> int:
    """A divisor of elements at multiples of an index, by that of the first of each group."""
    terms = along.step.terms
    if not terms or index % along.length == 0:
        return own
    least = min([power_of_two(coefficient) for coefficient, _ in terms])
    return min(own, least * power_of_two(gcd(index, along.length)) * unit)


def unknown(kind: Kind) -> AffineTile:
    """What holds of any value of a kind."""
    rank = len(kind.shape)
    return made(kind, (GENERAL,) * rank, None)


def uniform_tile(
    kind: Kind,
    value: Expression | None,
    divisor: int = 1,
    *,
    base: SSAValue | None = None,
    is_nonnegative: bool = False,
) -> AffineTile:
    """A tile that holds one number everywhere; None: a number that is not known."""
    dims = (AT_REST,) * len(kind.shape)
    return made(kind, dims, value, divisor, base=base, is_nonnegative=is_nonnegative)


def constant_tile(kind: Kind, value: int) -> AffineTile:
    """A tile all of whose elements are one known integer."""
    return uniform_tile(kind, integer(value), power_of_two(value), is_nonnegative=value >= 0)


def _settled(along: Along, size: int, bits: int) -> Along:
    if size == 1:
        return Along(STILL, along.start if along.form is None else None, None, ZERO, 1)
    stride, start, form, length = along.stride, along.start, along.form, along.length
    if along.is_still():
        return along if length == size else Along(stride, start, form, ZERO, size)
    step = along.step
    if length == WHOLE:
        is_whole = stride is not None and not stride.jumps
        step, length = (stride.value, size) if stride is not None and is_whole else (ZERO, 1)
    if bits == 1:
        return Along(None, None, None, ZERO, 1 if step.terms else length)
    if bits:
        stride = None if stride is None else stride.reduced(bits)
        start = None if start is None else start.reduced(bits)
        is_changed = (stride, start) != (along.stride, along.start)
        start, form = (None, None) if is_changed and form is not None else (start, form)
        step = step.reduced(bits)
    return Along(stride, start, form, ZERO if length == 1 else step, length)


def power_of_two(value: int) -> int:
    """The largest power of two that divides `value`, at most EVERY."""
    return min(value & -value, EVERY) if value else EVERY
