"""Constructors of layouts: the layouts that tiles have in registers and in shared memory.

Each is written as the sequence of its bits, lowest first, and what the bits leave of the shape is
repeated in registers. Bits of lanes and warps that find nothing left of a dim hold copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.layout.linear import Coordinates, LinearLayout
from tilewright.layout.map import unit
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import LayoutError, UnsupportedLayout
from tilewright.support.powers_of_two import is_power_of_two, power_of_two_part

# The bits of a piece of a layout: `2^k` places of an in-dim along a dim of the tile.
_Step = tuple[str, int, int]

_DISTRIBUTED = ("register", "lane", "warp")


# --- in registers -----------------------------------------------------------------------------


def blocked(
    shape: Sequence[int],
    size_per_thread: Sequence[int],
    lanes: Sequence[int],
    warps: Sequence[int],
    order: Sequence[int],
) -> LinearLayout:
    """The layout in which a lane holds a small block, a warp a grid of them, and so on.

    *Semantics*: along each dim `size_per_thread` registers, then lanes, then warps; the dims of
    `order` fill an index from its low end. The rest of the shape repeats in registers.
    *Constraints*: all but the shape are powers of two. Where the shape is smaller than what
    they cover, or a multiple of a smaller power of two only, registers are left out and lanes
    and warps hold copies.
    """
    _check_order(shape, order)
    steps: list[_Step] = []
    for in_dim, sizes in zip(_DISTRIBUTED, (size_per_thread, lanes, warps), strict=True):
        steps += [(in_dim, dim, sizes[dim]) for dim in order]
    return _from_steps(shape, steps, tuple(reversed(order)))


def coalesced(
    shape: Sequence[int],
    order: Sequence[int],
    vector_elems: int,
    num_warps: int,
    num_lanes: int = 32,
) -> LinearLayout:
    """The blocked layout that reads memory in `order` with vectors of `vector_elems`.

    *Semantics*: after the vector, lanes and then warps fill the shape in `order`.
    """
    _check_order(shape, order)
    left = [power_of_two_part(extent) for extent in shape]
    fastest = order[0]
    steps: list[_Step] = [("register", fastest, min(vector_elems, left[fastest]))]
    left[fastest] //= min(vector_elems, left[fastest])
    for in_dim, count in (("lane", num_lanes), ("warp", num_warps)):
        for dim in order:
            taken = min(count, left[dim])
            steps.append((in_dim, dim, taken))
            left[dim] //= taken
            count //= taken
        steps.append((in_dim, fastest, count))  # nothing left: copies
    return _from_steps(shape, steps, tuple(reversed(order)))


def wgmma_accumulator(shape: Sequence[int], warps: tuple[int, int], n: int) -> LinearLayout:
    """The layout of the result of `wgmma.m64nNk*`, one such tile a warp group.

    *Shapes*: `shape: [M, N]`; `warps = (wm, wn)`, warp `w` at `(w % wm, w // wm)`.
    *Constraints*: `wm` is a multiple of 4, `n` of 8 and a divisor of N; a power of two with more
    than one warp group along N. Registers of one instruction are in its order, and contiguous.
    *Source*: PTX ISA 8.8, 9.7.15.5.1, "Register Fragments for wgmma".
    """
    warps_m, warps_n = warps
    if len(shape) != 2 or warps_m % 4 or n % 8 or shape[1] % n:
        raise LayoutError(f"wgmma m64n{n} by {warps} warps does not make a tile {tuple(shape)}")
    if warps_n > 1 and not is_power_of_two(n):
        raise UnsupportedLayout(
            f"{warps_n} warp groups side by side cannot each hold {n} columns",
            hint="place the warp groups along M",
        )
    within = n // 8 if warps_n > 1 else 1
    steps = [*_accumulator_steps(), ("register", 1, within), ("warp", 0, warps_m)]
    return _from_steps(shape, [*steps, ("warp", 1, warps_n)], (0, 1))


def wgmma_operand_a(
    shape: Sequence[int], element_bits: int, warps: tuple[int, int]
) -> LinearLayout:
    """The layout of operand A of wgmma in registers.

    *Shapes*: `shape: [M, K]`; warps as in `wgmma_accumulator`, those along N hold copies.
    *Constraints*: a register holds `32 / element_bits` neighbours along K, so 16-bit elements
    sit where the accumulator of as many columns has them, others do not.
    *Source*: PTX ISA 8.8, 9.7.15.5.1.
    """
    if len(shape) != 2 or warps[0] % 4:
        raise LayoutError(f"wgmma takes no A of {tuple(shape)} by {warps} warps")
    return mma_operand(shape, 0, element_bits, warps)


def mma_accumulator(shape: Sequence[int], warps: tuple[int, int]) -> LinearLayout:
    """The layout of the result of `mma.m16n8k*`, warps next to each other.

    *Shapes*: `shape: [M, N]`; `warps = (wm, wn)`, warp `w` at `(w % wm, w // wm)`.
    *Source*: PTX ISA 8.8, 9.7.14.5.8, "Matrix Fragments for mma.m16n8k16".
    """
    _check_extents(shape, (16, 8))
    steps = [*_accumulator_steps(), ("warp", 0, warps[0]), ("warp", 1, warps[1])]
    return _from_steps(shape, steps, (0, 1))


def mma_operand(
    shape: Sequence[int], which: int, element_bits: int, warps: tuple[int, int]
) -> LinearLayout:
    """The layout of an operand of `mma.m16n8k8` (32-bit), `k16` (16-bit) or `k32` (8-bit).

    *Shapes*: `[M, K]` for operand 0, `[K, N]` for operand 1; warps as in `mma_accumulator`,
    those along the dim that the operand has not hold copies.
    *Source*: PTX ISA 8.8, 9.7.14.5, "Matrix Fragments".
    """
    if element_bits not in (8, 16, 32) or which not in (0, 1):
        raise LayoutError(f"mma has no operand {which} of {element_bits}-bit elements")
    packed = 32 // element_bits
    outer, inner = which, 1 - which  # the dim M or N, and the dim K
    _check_extents(shape, (16, 8 * packed) if which == 0 else (8 * packed, 8))
    steps: list[_Step] = [("register", inner, packed), ("lane", inner, 4), ("lane", outer, 8)]
    if which == 0:
        steps.append(("register", outer, 2))
    steps.append(("register", inner, 2))
    for axis in (0, 1):
        steps += [("warp", outer, warps[axis])] if axis == which else [("warp", -1, warps[axis])]
    return _from_steps(shape, steps, (0, 1))


def _accumulator_steps() -> list[_Step]:
    """The 16 × 8 results of a warp: pairs along a row, 4 lanes a row, 8 rows, and 8 below."""
    return [("register", 1, 2), ("lane", 1, 4), ("lane", 0, 8), ("register", 0, 2)]


# --- in shared memory -------------------------------------------------------------------------


def shared_linear(shape: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """The layout of a tile written to shared memory densely, `order[0]` the fastest dim."""
    _check_order(shape, order)
    return _from_steps(shape, [], tuple(reversed(order)), in_dims=("offset",))


def shared_row(shape: Sequence[int], element_bytes: int) -> LinearLayout:
    """The layout in shared memory of one row of elements: chunks of 16 bytes, XORed.

    *Semantics*: `shared_linear`, cut into lines of 128 bytes that are swizzled like the rows of
    `shared_swizzled`, so that vectors at a distance of 32 bytes or more lie in banks of their own.
    """
    order = tuple(reversed(range(len(shape))))
    return _swizzle(shared_linear(shape, order), element_bytes, 128, 0)


def shared_swizzled(
    shape: Sequence[int],
    element_bytes: int,
    swizzle_bytes: int,
    order: Sequence[int],
    rotation: int = 0,
) -> LinearLayout:
    """The layout in shared memory that TMA writes and wgmma reads.

    *Semantics*: panels of `swizzle_bytes` along `order[0]` one after the other, each with all
    rows (the other dims in `order`). Within a panel the bits of a byte offset that count chunks
    of 16 bytes, from bit 4, are XORed with as many bits from bit 7. 0 is `shared_linear`, and 16
    is panels of 16 bytes without XOR: what wgmma calls no swizzle. Bit `i` is XORed onto bit
    `i + rotation` of a chunk's number, around its end; TMA and wgmma know a rotation of 0 alone.
    *Units*: offsets count elements. The tile starts at a multiple of `8 * swizzle_bytes` bytes.
    *Source*: PTX ISA 8.8, 5.5.7, "Swizzling Modes", and 9.7.15.5.1, "Shared Memory Layout".
    """
    _check_order(shape, order)
    if swizzle_bytes not in (0, 16, 32, 64, 128):
        raise LayoutError(f"there is no swizzle of {swizzle_bytes} bytes: 0, 16, 32, 64 or 128")
    if swizzle_bytes == 0:
        return shared_linear(shape, order)
    fastest, span = order[0], swizzle_bytes // element_bytes
    row_bytes = shape[fastest] * element_bytes
    if row_bytes % swizzle_bytes:
        raise UnsupportedLayout(
            f"rows of {row_bytes} bytes are not whole panels of {swizzle_bytes}",
            hint=f"panels of {min(128, power_of_two_part(row_bytes))} bytes fit",
        )
    repeat_order = (fastest, *(dim for dim in reversed(order) if dim != fastest))
    plain = _from_steps(shape, [("offset", fastest, span)], repeat_order, in_dims=("offset",))
    return _swizzle(plain, element_bytes, swizzle_bytes, rotation)


def _swizzle(
    plain: LinearLayout, element_bytes: int, swizzle_bytes: int, rotation: int
) -> LinearLayout:
    """The layout whose chunk bits are XORed with the bits of the offset from byte 128 on."""
    bases = list(plain.basis_images("offset"))
    shift = element_bytes.bit_length() - 1
    num_bits = (swizzle_bytes // 16).bit_length() - 1
    if plain.repeat_order and len(bases) + shift < 7 + num_bits:
        raise UnsupportedLayout(
            f"{plain.shape} repeats a part that is smaller than a swizzle of {swizzle_bytes}",
            hint="use a number of rows that is a multiple of 8, or less swizzle",
        )
    for bit in range(num_bits):
        row = 7 + bit - shift
        if row < len(bases):
            chunk = bases[4 + (bit + rotation) % num_bits - shift]
            bases[row] = tuple(a ^ b for a, b in zip(bases[row], chunk, strict=True))
    return LinearLayout((("offset", tuple(bases)),), plain.atom, plain.repeats, plain.repeat_order)


@dataclass(frozen=True)
class PaddedLayout:
    """A layout in shared memory with unused elements between its rows.

    *Semantics*: the element at `offset` of `linear` is at `offset + offset // interval *
    padding` of memory.
    """

    linear: LinearLayout
    interval_elems: int
    padding_elems: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile."""
        return self.linear.shape

    @property
    def num_elems(self) -> int:
        """The number of elements of memory, the unused ones between rows included."""
        return self.address(prod(self.shape) - 1) + 1

    def address(self, offset: int) -> int:
        """Where the element at an offset of the layout is in memory."""
        return offset + offset // self.interval_elems * self.padding_elems


def padded_shared(
    shape: Sequence[int], order: Sequence[int], interval_elems: int, padding_elems: int
) -> PaddedLayout:
    """The dense layout in shared memory with padding after every `interval_elems`."""
    if not is_power_of_two(interval_elems) or padding_elems < 0:
        raise LayoutError(f"no padding of {padding_elems} after every {interval_elems} elements")
    return PaddedLayout(shared_linear(shape, order), interval_elems, padding_elems)


# --- from bits --------------------------------------------------------------------------------


def _from_steps(
    shape: Sequence[int],
    steps: Sequence[_Step],
    repeat_order: tuple[int, ...],
    in_dims: Sequence[str] = _DISTRIBUTED,
) -> LinearLayout:
    """The layout whose bits are the steps, lowest first, and whose registers do the rest.

    A step along dim -1, or where the shape has no factor of two left, holds copies; registers
    and offsets hold none.
    """
    extents = [1] * len(shape)
    bases: dict[str, list[Coordinates]] = {in_dim: [] for in_dim in in_dims}
    for in_dim, dim, count in steps:
        if not is_power_of_two(count):
            raise LayoutError(f"{count} {in_dim}s along a dim are not a power of two")
        for _ in range(count.bit_length() - 1):
            if dim >= 0 and shape[dim] % (2 * extents[dim]) == 0:
                bases[in_dim].append(unit(len(shape), dim, extents[dim]))
                extents[dim] *= 2
            elif in_dim != in_dims[0]:
                bases[in_dim].append((0,) * len(shape))
    repeats = tuple(extent // done for extent, done in zip(shape, extents, strict=True))
    return LinearLayout(
        tuple((name, tuple(vectors)) for name, vectors in bases.items()),
        tuple(extents),
        repeats,
        repeat_order,
    )


def _check_order(shape: Sequence[int], order: Sequence[int]) -> None:
    if sorted(order) != list(range(len(shape))) or not all(extent > 0 for extent in shape):
        raise LayoutError(f"{tuple(order)} does not order the dims of {tuple(shape)}")


def _check_extents(shape: Sequence[int], least: tuple[int, int]) -> None:
    if len(shape) != 2 or any(extent % part for extent, part in zip(shape, least, strict=True)):
        raise LayoutError(f"{tuple(shape)} is not made of fragments of {least}")
