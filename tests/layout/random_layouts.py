"""Random layouts: those that constructors make, and any other that holds every element."""

from __future__ import annotations

from random import Random

from tilewright.layout.build import blocked, coalesced, mma_accumulator, mma_operand
from tilewright.layout.linear import Coordinates, LinearLayout
from tilewright.layout.map import unit
from tilewright.support.powers_of_two import power_of_two_part

# Powers of two, other multiples, odd extents, extents of 1, every rank that kernels use.
SHAPES = (
    *((1,), (40,), (128,)),
    *((1, 64), (2, 2), (3, 5), (128, 1), (32, 32), (64, 16), (48, 32), (16, 80), (96, 24)),
    *((8, 8, 8), (4, 12, 20), (32, 8, 2)),
)


def random_layout(
    random: Random, shape: tuple[int, ...], lane_bits: int = 5, warp_bits: int = 2
) -> LinearLayout:
    """A distributed layout of a shape, of any kind."""
    order = random.sample(range(len(shape)), len(shape))
    kind = random.choice(("blocked", "coalesced", "mma", "any", "any"))
    if kind == "blocked":
        bits = (random.randrange(4), lane_bits, warp_bits)
        size, lanes, warps = (_spread(random, len(shape), count) for count in bits)
        return blocked(shape, size, lanes, warps, order)
    if kind == "coalesced":
        vector = 1 << random.randrange(5)
        return coalesced(shape, order, vector, 1 << warp_bits, 1 << lane_bits)
    is_matrix = len(shape) == 2 and shape[0] % 64 == 0 and shape[1] % 16 == 0
    if kind == "mma" and is_matrix and lane_bits == 5:
        return _random_fragment(random, shape, warp_bits)
    return _any_layout(random, shape, order, (99, lane_bits, warp_bits))


def _spread(random: Random, rank: int, bits: int) -> list[int]:
    sizes = [1] * rank
    for _ in range(bits):
        sizes[random.randrange(rank)] *= 2
    return sizes


def _random_fragment(random: Random, shape: tuple[int, ...], warp_bits: int) -> LinearLayout:
    rows = random.randrange(warp_bits + 1)
    warps = (1 << rows, 1 << (warp_bits - rows))
    if random.random() < 0.5:
        return mma_accumulator(shape, warps)
    return mma_operand(shape, random.randrange(2), random.choice((16, 32)), warps)


def _any_layout(
    random: Random, shape: tuple[int, ...], order: list[int], room: tuple[int, int, int]
) -> LinearLayout:
    """The bits of the elements dealt out at random, some mixed by XOR, and copies in between."""
    atom = tuple(map(power_of_two_part, shape))
    vectors = [
        unit(len(shape), dim, 1 << bit)
        for dim, extent in enumerate(atom)
        for bit in range(extent.bit_length() - 1)
    ]
    random.shuffle(vectors)
    for _ in range(random.choice((0, 4)) if len(vectors) > 1 else 0):
        i, j = random.sample(range(len(vectors)), 2)
        vectors[i] = tuple(a ^ b for a, b in zip(vectors[i], vectors[j], strict=True))
    dealt: list[list[Coordinates]] = [[], [], []]
    for vector in vectors:
        dealt[random.choice([i for i in range(3) if len(dealt[i]) < room[i]])].append(vector)
    for place, count in ((1, room[1]), (2, room[2]), (0, len(dealt[0]) + random.randrange(2))):
        while len(dealt[place]) < count:
            zero = (0,) * len(shape)
            copy = random.choice(vectors) if vectors and random.random() < 0.3 else zero
            dealt[place].insert(random.randrange(len(dealt[place]) + 1), copy)
    bases = tuple(zip(("register", "lane", "warp"), map(tuple, dealt), strict=True))
    repeats = tuple(extent // part for extent, part in zip(shape, atom, strict=True))
    return LinearLayout(bases, atom, repeats, tuple(order))
