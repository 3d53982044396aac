"""The multiples that integers of a launch are compiled for.

An access of several bytes at once begins at a multiple of so many bytes. Whether a row does
follows from its stride, which is an argument: of float16 a multiple of 8 elements has 16 bytes, of
4 has 8, of 2 has 4. Other multiples change no access of the kernel, so no launch is told apart by
them; 16 always counts, as it does in Triton.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.frontend.type_text import parse_descriptor, parse_scalar
from tilewright.language.core import pointer_type
from tilewright.support.dataclass import dataclass

# By definition: what a divisible integer of Triton's is a multiple of.
MOST_DIVISOR = 16
# Source: PTX ISA 8.8, "cp.async": copies of 4, 8 and 16 bytes; loads and stores have them too.
_ACCESS_BYTES = (16, 8, 4)


@dataclass(frozen=True)
class DivisorClass:
    """Integers that are multiples of `divisor`, and of no larger one that launches tell apart.

    `larger` is the next one, 0 for the largest. `takes_one` is False where the integer 1 is a
    constant, and so of no class.
    """

    divisor: int
    larger: int
    takes_one: bool


def divisors_of(types: Iterable[str]) -> tuple[int, ...]:
    """What launches of a signature with these leaves tell integers apart by, the largest first.

    *Example*

    >>> divisors_of(["*fp16", "i32"]), divisors_of(["*fp32"]), divisors_of(["i32"])
    ((16, 8, 4, 2), (16, 4, 2), (16,))
    """
    sizes = {size for size in map(_element_bytes, types) if size}
    useful = {access // size for access in _ACCESS_BYTES for size in sizes}
    smaller = [divisor for divisor in useful if 1 < divisor < MOST_DIVISOR]
    return (MOST_DIVISOR, *sorted(smaller, reverse=True))


def divisor_class(
    divisor: int, types: Iterable[str], least: int, *, takes_one: bool
) -> DivisorClass:
    """The class of an integer with a divisor (1 for none), where targets know `least` and more."""
    larger = [known for known in divisors_of(types) if divisor < known and known >= least]
    return DivisorClass(divisor, min(larger, default=0), takes_one)


def known_divisor(value: int, divisors: Iterable[int]) -> int:
    """The largest of `divisors` that divides a value, else 1."""
    return max((divisor for divisor in divisors if value % divisor == 0), default=1)


def _element_bytes(type_: str) -> int:
    """The bytes of what a pointer or descriptor points to; 0 for other types."""
    descriptor = parse_descriptor(type_)
    if descriptor is not None:
        return descriptor.element.itemsize
    pointer = parse_scalar(type_)
    return pointer.element_ty.itemsize if isinstance(pointer, pointer_type) else 0
