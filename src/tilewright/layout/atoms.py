"""A distributed layout as vectors over GF(2), in one atom that all layouts of a shape share.

The atom of a layout is as large as the order of its registers allows. Two layouts of one shape
meet in the largest power of two along each dim; what repeats beyond is odd, and the same for
both, so a conversion is the same linear map in every copy of the atom.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from tilewright.layout.digits import positions
from tilewright.layout.gf2 import Span
from tilewright.layout.linear import LinearLayout
from tilewright.support.dataclass import dataclass
from tilewright.support.powers_of_two import power_of_two_part


@dataclass(frozen=True)
class AtomView:
    """The vectors of a distributed layout in the largest atom of its shape.

    A vector is the coordinates of a bit as one number, row-major in `atom`. Register bits that
    depend on register bits before them are not among `registers`: they hold copies.
    """

    atom: tuple[int, ...]
    counts: tuple[int, ...]  # of atoms along each dim, all odd
    num_bits: int
    # The vectors of the register bits that are no copies, and what each adds to the index.
    registers: tuple[int, ...]
    strides: tuple[int, ...]
    # The register at the origin of each copy of the atom, copies in row-major order.
    copy_registers: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    # For each register of the layout: the copy it is in, and the combination of `registers`.
    places: tuple[tuple[int, int], ...]
    # The bits of lanes and warps that hold copies.
    free_lanes: int
    free_warps: int

    @property
    def num_copies(self) -> int:
        """The number of copies of the atom."""
        return len(self.copy_registers)

    def register(self, copy: int, combination: int) -> int:
        """The register of the layout that is a combination of register bits in one copy."""
        index = self.copy_registers[copy]
        for bit, stride in enumerate(self.strides):
            if combination >> bit & 1:
                index += stride
        return index

    def vector(self, combination: int) -> int:
        """The element of the atom that a combination of register bits holds at lane 0, warp 0."""
        total = 0
        for bit, vector in enumerate(self.registers):
            if combination >> bit & 1:
                total ^= vector
        return total


@lru_cache(maxsize=512)
def atom_view(layout: LinearLayout) -> AtomView:
    """The view of a distributed layout in the largest atom of its shape."""
    atom = tuple(power_of_two_part(extent) for extent in layout.shape)
    bits = _register_bits(layout, atom)
    span = Span(vector for _, vector in bits)
    kept = [bit for bit, is_free in enumerate(span.free) if not is_free]
    places, copy_registers = _places(layout, atom, span, kept)
    return AtomView(
        atom=atom,
        counts=tuple(extent // part for extent, part in zip(layout.shape, atom, strict=True)),
        num_bits=prod(atom).bit_length() - 1,
        registers=tuple(bits[bit][1] for bit in kept),
        strides=tuple(bits[bit][0] for bit in kept),
        copy_registers=copy_registers,
        lanes=tuple(_pack(v, atom) for v in layout.basis_images("lane")),
        warps=tuple(_pack(v, atom) for v in layout.basis_images("warp")),
        places=places,
        free_lanes=layout.free_bits("lane"),
        free_warps=layout.free_bits("warp"),
    )


def _register_bits(layout: LinearLayout, atom: tuple[int, ...]) -> list[tuple[int, int]]:
    """The bits of a register index (what each adds to it, its vector), those in repeats too."""
    vectors = layout.basis_images("register")
    bits = [(1 << bit, _pack(vector, atom)) for bit, vector in enumerate(vectors)]
    stride = 1 << len(vectors)
    for dim in reversed(layout.repeat_order):
        extent, step = layout.atom[dim], stride
        while extent < atom[dim]:
            bits.append((step, _pack(tuple(extent * (d == dim) for d in range(len(atom))), atom)))
            extent, step = 2 * extent, 2 * step
        stride *= layout.repeats[dim]
    return bits


def _places(
    layout: LinearLayout, atom: tuple[int, ...], span: Span, kept: list[int]
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Copy and combination of each register, and the register at the origin of each copy."""

    def combination(coordinates: tuple[int, ...]) -> int:
        found = span.reduce(_pack(coordinates, atom))[1]
        return sum(1 << new for new, bit in enumerate(kept) if found >> bit & 1)

    low = [0]
    for vector in layout.basis_images("register"):
        step = combination(vector)
        low += [step ^ other for other in low]
    # A repeat of the layout's atom is a copy of the largest atom, and a part of it.
    parts = tuple(whole // part for whole, part in zip(atom, layout.atom, strict=True))
    counts = tuple(extent // part for extent, part in zip(layout.shape, atom, strict=True))
    copies = {at: copy for copy, at in enumerate(positions(range(layout.rank), counts))}
    places: list[tuple[int, int]] = []
    origins: dict[int, int] = {}
    for at in positions(layout.repeat_order, layout.repeats):
        copy = copies[tuple(p // n for p, n in zip(at, parts, strict=True))]
        inside = (p % n * a for p, n, a in zip(at, parts, layout.atom, strict=True))
        start = combination(tuple(inside))
        if start == 0:
            origins[copy] = len(places)
        places += [(copy, start ^ other) for other in low]
    return tuple(places), tuple(origins[copy] for copy in range(len(copies)))


def _pack(coordinates: tuple[int, ...], atom: tuple[int, ...]) -> int:
    packed = 0
    for coordinate, extent in zip(coordinates, atom, strict=True):
        packed = packed * extent + coordinate
    return packed
