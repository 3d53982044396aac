"""What is known of a tile along each of its dimensions: a stride, and how far it holds.

Along each dimension a tile is cut into groups of `length` elements, the first at index 0. In each
group every element is its predecessor plus `stride`, and the first one is a multiple of `divisor`,
a power of two. Groups divide the extent. A scalar counts as a tile of one element. Divisors of
pointers count bytes, strides count elements.

    16 + arange(0, 64)        stride 1, length 64, divisor 16
    arange(0, 64) // 8        stride 0, length  8, divisor  1
    arange(0, 64) % 8 * 4     stride 4, length  8, divisor EVERY: groups start with 0
    splat(pointer) + arange   stride 1, length 64, divisor of the pointer in bytes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd

from xdsl.ir import Attribute

from tilewright.ir.types import PointerType, element_of, shape_of, storage_bytes
from tilewright.support.dataclass import dataclass, replace

EVERY = 1 << 62
"""The divisor of zero, and of what is a multiple of more than matters."""


def power_of_two(value: int) -> int:
    """The largest power of two that divides `value`, at most EVERY."""
    return min(value & -value, EVERY) if value else EVERY


Group = tuple[int, int]
"""The stride and the length of the groups along a dimension."""


@dataclass(frozen=True)
class Run:
    """The groups along one dimension; see the module. Groups of one element have stride 0."""

    stride: int
    length: int
    divisor: int

    def equal(self) -> int:
        """The length of groups of equal elements."""
        return 1 if self.stride else self.length

    def adjacent(self) -> int:
        """The length of groups of consecutive elements."""
        return self.length if self.stride == 1 else 1

    def divisor_at(self, index: int, step: int) -> int:
        """A divisor of the elements at multiples of an index, `step` for a stride of one."""
        if index % self.length == 0 or not self.stride:
            return self.divisor
        return min(self.divisor, power_of_two(self.stride * gcd(index, self.length)) * step)


@dataclass(frozen=True)
class Facts:
    """The facts of one value; see the module.

    `constant` is the one value of every element. `is_nonnegative` is of the value as a signed
    integer. `step` is what elements that differ by one differ by: the bytes of an element for a
    pointer, else 1.
    """

    extents: tuple[int, ...]
    runs: tuple[Run, ...]
    constant: int | None = None
    is_nonnegative: bool = False
    step: int = 1

    def dims(self) -> range:
        """The dimensions; a scalar has one."""
        return range(len(self.extents))

    @property
    def contiguity(self) -> tuple[int, ...]:
        """Per dimension the length of groups of consecutive elements."""
        return tuple(run.adjacent() for run in self.runs)

    @property
    def constancy(self) -> tuple[int, ...]:
        """Per dimension the length of groups of equal elements."""
        return tuple(run.equal() for run in self.runs)

    @property
    def divisibility(self) -> tuple[int, ...]:
        """Per dimension a divisor of the first element of each group of consecutive ones."""
        return tuple(self.divisor_at(d, run.adjacent()) for d, run in enumerate(self.runs))

    def divisor_at(self, dim: int, run: int) -> int:
        """A divisor of every element whose index along `dim` is a multiple of `run`."""
        return max(self.runs[dim].divisor_at(run, self.step), self.divisor())

    def divisor(self) -> int:
        """A divisor of every element."""
        return max([run.divisor_at(1, self.step) for run in self.runs])

    def is_constant_along(self, dim: int) -> bool:
        """Whether all elements along `dim` are equal."""
        return self.runs[dim].equal() == self.extents[dim]

    def aligned_run(self, dim: int) -> int:
        """Elements of the longest run of a power of two that starts at a multiple of itself.

        Such a run crosses no multiple of a larger power of two, zero and overflow included.
        """
        run = power_of_two(self.runs[dim].adjacent())
        return min(run, self.divisor_at(dim, run) // self.step or 1)


Divisor = Callable[[int, int], int]
"""A divisor of the elements whose index along a dimension is a multiple of a run."""


def facts_from(
    extents: tuple[int, ...],
    groups: Iterable[Group],
    divisor: Divisor,
    *,
    is_nonnegative: bool = False,
    step: int = 1,
) -> Facts:
    """Facts whose divisors are asked for at the start of every group."""
    runs = tuple(
        Run(stride if length > 1 else 0, length, min(divisor(dim, length), EVERY))
        for dim, (stride, length) in enumerate(groups)
    )
    return Facts(extents, runs, None, is_nonnegative, step)


def in_equal_groups(
    extents: tuple[int, ...],
    lengths: tuple[int, ...],
    divisor: int = 1,
    *,
    is_nonnegative: bool = False,
    step: int = 1,
) -> Facts:
    """Facts of groups of equal elements, all of them multiples of `divisor`."""
    divisor = min(divisor, EVERY)
    runs = tuple(Run(0, length, divisor) for length in lengths)
    return Facts(extents, runs, None, is_nonnegative, step)


def equal_like(source: Facts, extents: tuple[int, ...], lengths: tuple[int, ...]) -> Facts:
    """Facts of a tile of the same elements in which groups are equal."""
    divisor = source.divisor()
    runs = tuple(Run(0, length, divisor) for length in lengths)
    return Facts(extents, runs, None, source.is_nonnegative, source.step)


def constant_facts(extents: tuple[int, ...], value: int) -> Facts:
    """Facts of a value all of whose elements are one known integer."""
    divisor = power_of_two(value)
    return Facts(extents, tuple(Run(0, n, divisor) for n in extents), value, value >= 0)


def extents_of(type_: Attribute) -> tuple[int, ...]:
    """The shape of a type, (1,) for a scalar."""
    return shape_of(type_) or (1,)


def step_of(type_: Attribute) -> int:
    """What consecutive elements of a run of this type differ by."""
    element = element_of(type_)
    return storage_bytes(element.pointee) if isinstance(element, PointerType) else 1


def unknown(type_: Attribute) -> Facts:
    """What holds of any value of a type."""
    extents = extents_of(type_)
    return in_equal_groups(extents, (1,) * len(extents), step=step_of(type_))


def equal_groups(left: Facts, right: Facts) -> tuple[int, ...]:
    """The lengths of groups in which both keep their value, per dimension."""
    return tuple(gcd(a.equal(), b.equal()) for a, b in zip(left.runs, right.runs, strict=True))


def shared_groups(left: Facts, right: Facts) -> list[Group]:
    """The longest groups in which both go by the same stride, per dimension."""
    pairs = zip(left.runs, right.runs, strict=True)
    return [(a.stride, gcd(a.length, b.length) if a.stride == b.stride else 1) for a, b in pairs]


def of_both(
    left: Facts,
    right: Facts,
    groups: Iterable[Group],
    *,
    extents: tuple[int, ...] | None = None,
    is_nonnegative: bool | None = None,
) -> Facts:
    """Facts of multiples of what divides two values; not negative, unless told, as both are."""
    if is_nonnegative is None:
        is_nonnegative = left.is_nonnegative and right.is_nonnegative
    return facts_from(
        left.extents if extents is None else extents,
        groups,
        lambda dim, run: min(left.divisor_at(dim, run), right.divisor_at(dim, run)),
        is_nonnegative=is_nonnegative,
        step=left.step,
    )


def meet(left: Facts, right: Facts) -> Facts:
    """What holds of a value that is either of two."""
    if left == right:
        return left
    joined = of_both(left, right, shared_groups(left, right))
    same = left.constant is not None and left.constant == right.constant
    return replace(joined, constant=left.constant) if same else joined
