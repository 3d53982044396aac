"""What is known of a tile along each of its dimensions: runs, equal values and divisors.

Along dimension d, cut a tile into groups of `contiguity[d]` elements, the first at index 0. In
each group every element is its predecessor plus one, and the first one is a multiple of
`divisibility[d]`, a power of two. In each group of `constancy[d]` elements all are equal. Groups
divide the extent. A scalar counts as a tile of one element. Divisors of pointers count bytes,
runs count elements.

    16 + arange(0, 64)        contiguity 64, divisibility 16, constancy 1
    arange(0, 64) // 8        contiguity  1, divisibility  1, constancy 8
    splat(pointer) + arange   contiguity 64, divisibility of the pointer in bytes
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from xdsl.ir import Attribute

from tilewright.ir.types import PointerType, element_of, shape_of, storage_bytes
from tilewright.support.dataclass import dataclass, replace

EVERY = 1 << 62
"""The divisor of zero, and of what is a multiple of more than matters."""


def power_of_two(value: int) -> int:
    """The largest power of two that divides `value`, at most EVERY."""
    return min(value & -value, EVERY) if value else EVERY


@dataclass(frozen=True)
class Facts:
    """The facts of one value; see the module.

    `constant` is the one value of every element. `is_nonnegative` is of the value as a signed
    integer. `step` is what consecutive elements of a run differ by: the bytes of an element for
    a pointer, else 1.
    """

    extents: tuple[int, ...]
    divisibility: tuple[int, ...]
    contiguity: tuple[int, ...]
    constancy: tuple[int, ...]
    constant: int | None = None
    is_nonnegative: bool = False
    step: int = 1

    def dims(self) -> range:
        """The dimensions; a scalar has one."""
        return range(len(self.extents))

    def divisor_at(self, dim: int, run: int) -> int:
        """A divisor of every element whose index along `dim` is a multiple of `run`."""
        return max(self._divisor_along(dim, run), self.divisor())

    def divisor(self) -> int:
        """A divisor of every element."""
        return max(self._divisor_along(dim, 1) for dim in self.dims())

    def is_constant_along(self, dim: int) -> bool:
        """Whether all elements along `dim` are equal."""
        return self.constancy[dim] == self.extents[dim]

    def aligned_run(self, dim: int) -> int:
        """Elements of the longest run of a power of two that starts at a multiple of itself.

        Such a run crosses no multiple of a larger power of two, zero and overflow included.
        """
        run = power_of_two(self.contiguity[dim])
        return min(run, self.divisor_at(dim, run) // self.step or 1)

    def _divisor_along(self, dim: int, run: int) -> int:
        length = self.contiguity[dim]
        if run % length == 0:
            return self.divisibility[dim]
        return min(self.divisibility[dim], power_of_two(gcd(run, length)) * self.step)


Divisor = Callable[[int, int], int]
"""A divisor of the elements whose index along a dimension is a multiple of a run."""


def facts_from(
    extents: tuple[int, ...],
    contiguity: tuple[int, ...],
    constancy: tuple[int, ...],
    divisor: Divisor,
    *,
    is_nonnegative: bool = False,
    step: int = 1,
) -> Facts:
    """Facts whose divisors are asked for at the start of every run."""
    divisors = tuple(min(divisor(dim, run), EVERY) for dim, run in enumerate(contiguity))
    return Facts(extents, divisors, contiguity, constancy, None, is_nonnegative, step)


def scattered(
    extents: tuple[int, ...],
    constancy: tuple[int, ...],
    divisor: int = 1,
    *,
    is_nonnegative: bool = False,
    step: int = 1,
) -> Facts:
    """Facts of elements without runs, all of them multiples of `divisor`."""
    ones = (1,) * len(extents)
    return facts_from(
        extents, ones, constancy, lambda _, __: divisor, is_nonnegative=is_nonnegative, step=step
    )


def constant_facts(extents: tuple[int, ...], value: int) -> Facts:
    """Facts of a value all of whose elements are one known integer."""
    uniform = scattered(extents, extents, power_of_two(value), is_nonnegative=value >= 0)
    return replace(uniform, constant=value)


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
    return scattered(extents, (1,) * len(extents), step=step_of(type_))


def common_runs(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The longest groups that divide the groups of both, per dimension."""
    return tuple(gcd(a, b) for a, b in zip(left, right, strict=True))


def meet(left: Facts, right: Facts) -> Facts:
    """What holds of a value that is either of two."""
    if left == right:
        return left
    joined = facts_from(
        left.extents,
        common_runs(left.contiguity, right.contiguity),
        common_runs(left.constancy, right.constancy),
        lambda dim, run: min(left.divisor_at(dim, run), right.divisor_at(dim, run)),
        is_nonnegative=left.is_nonnegative and right.is_nonnegative,
        step=left.step,
    )
    same = left.constant is not None and left.constant == right.constant
    return replace(joined, constant=left.constant) if same else joined
