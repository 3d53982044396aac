"""User functions of random numbers: Philox, a counter-based generator without state.

Every element of a tile is a counter of its own, so results do not depend on the grid or on the
order in which programs run.
Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011,
table 2 (the multipliers) and section 4.3 (the Weyl constants of the key).
"""

from __future__ import annotations

from tilewright.language.core import (
    dtype,
    float32,
    int32,
    int64,
    tensor,
    tuple_,
    uint32,
    uint64,
)
from tilewright.ops.arguments import integer_constant
from tilewright.ops.builder import Builder
from tilewright.ops.casting import broadcast_shapes, broadcast_tensor, convert, to_tensor
from tilewright.ops.elementwise.operators import binary, elementwise
from tilewright.ops.elementwise.surface import maximum, select
from tilewright.ops.surface import surface
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import DtypeNotAllowed, InvalidOption

Words = tuple[tensor, tensor, tensor, tensor]


@dataclass(frozen=True)
class _Constants:
    """The multipliers of the two products and the increments of the two key words."""

    word: dtype
    multipliers: tuple[int, int]
    increments: tuple[int, int]


_PHILOX = {
    32: _Constants(uint32, (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    64: _Constants(
        uint64,
        (0xD2E7470EE14C6C93, 0xCA5A826395121157),
        (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
    ),
}
_MAX_ROUNDS = 64
_TWO_PI = 6.283185307179586
# 2^-31 and 2^-63, a little less, so that the greatest integer stays below 1 after rounding.
_UNIFORM_SCALE = {32: 4.6566127342e-10, 64: 1.0842020432385337e-19}
_LEAST_UNIFORM = 1.0e-7


def _rounds(value: object, function: str) -> int:
    rounds = integer_constant(value, function, "n_rounds")
    if not 0 <= rounds <= _MAX_ROUNDS:
        raise InvalidOption(
            f"{function}(): `n_rounds` is {rounds}; it must be 0 to {_MAX_ROUNDS}",
            argument="n_rounds",
        )
    return rounds


def _integer(b: Builder, value: object, function: str, argument: str) -> tensor:
    x = to_tensor(b, value)
    if not x.dtype.is_int():
        raise DtypeNotAllowed(
            f"{function}(): `{argument}` is {x.dtype}; an integer is needed",
            argument=argument,
            types={argument: str(x.type)},
        )
    return x


def _permute(b: Builder, counter: Words, key: tuple[tensor, tensor], rounds: int) -> Words:
    """The counter after `rounds` rounds of Philox-4x; all words of one shape and width."""
    constants = _PHILOX[counter[0].dtype.primitive_bitwidth]
    factors = [b.constant(m, counter[0].type) for m in constants.multipliers]
    steps = [b.constant(i, key[0].type) for i in constants.increments]
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        high0, low0 = _product(b, c0, factors[0])
        high1, low1 = _product(b, c2, factors[1])
        c0 = _mix(b, high1, c1, k0)
        c2 = _mix(b, high0, c3, k1)
        c1, c3 = low1, low0
        k0 = elementwise(b, "arith.addi", k0, steps[0])
        k1 = elementwise(b, "arith.addi", k1, steps[1])
    return c0, c1, c2, c3


def _product(b: Builder, x: tensor, factor: tensor) -> tuple[tensor, tensor]:
    """The high and the low word of x * factor."""
    high = elementwise(b, "tt.mulhiui", x, factor)
    return high, elementwise(b, "arith.muli", x, factor)


def _mix(b: Builder, high: tensor, word: tensor, key: tensor) -> tensor:
    mixed = elementwise(b, "arith.xori", high, word)
    return elementwise(b, "arith.xori", mixed, broadcast_tensor(b, key, mixed.static_shape))


def _common_words(b: Builder, values: list[tensor], word: dtype) -> list[tensor]:
    """The values as words of one shape; a value with wider words loses its high bits."""
    shape: tuple[int, ...] = ()
    for value in values:
        shape = broadcast_shapes(shape, value.static_shape)
    return [broadcast_tensor(b, convert(b, value, word), shape) for value in values]


def _generate(
    b: Builder, counter: list[tensor], key: tuple[tensor, tensor], rounds: int, word: dtype
) -> Words:
    k0, k1 = (convert(b, k, word) for k in key)
    if k0.static_shape or k1.static_shape:
        *counter, k0, k1 = _common_words(b, [*counter, k0, k1], word)
    c0, c1, c2, c3 = _common_words(b, counter, word)
    return _permute(b, (c0, c1, c2, c3), (k0, k1), rounds)


@surface()
def philox_impl(
    b: Builder,
    c0: object,
    c1: object,
    c2: object,
    c3: object,
    k0: object,
    k1: object,
    n_rounds: object = 10,
) -> tuple_:
    """The four words of Philox-4x for the counter (c0, c1, c2, c3) and the key (k0, k1).

    Shapes: all broadcast together.
    Dtypes: the width of `c0` decides, 32 or 64 bits; the result is uint32 or uint64.
    Raises: DtypeNotAllowed, InvalidOption.
    """
    rounds = _rounds(n_rounds, "philox_impl")
    names = ("c0", "c1", "c2", "c3", "k0", "k1")
    values = [
        _integer(b, v, "philox_impl", n)
        for v, n in zip((c0, c1, c2, c3, k0, k1), names, strict=True)
    ]
    word = _word_of(values[0], "philox_impl")
    return tuple_(_generate(b, values[:4], (values[4], values[5]), rounds, word))


def _word_of(c0: tensor, function: str) -> dtype:
    width = c0.dtype.primitive_bitwidth
    if width not in _PHILOX:
        raise DtypeNotAllowed(
            f"{function}(): `c0` is {c0.dtype}; a 32- or 64-bit integer is needed", argument="c0"
        )
    return _PHILOX[width].word


def _key_of(b: Builder, seed: tensor, word: dtype) -> tuple[tensor, tensor]:
    """The seed as two key words: low and high half, or seed and 0 where a word holds it all."""
    wide = convert(b, seed, uint64)
    if word == uint64:
        return wide, b.constant(0, wide.type)
    low = convert(b, wide, uint32)
    return low, convert(b, binary(b, "RShift", wide, 32), uint32)


@surface()
def philox(
    b: Builder,
    seed: object,
    c0: object,
    c1: object,
    c2: object,
    c3: object,
    n_rounds: object = 10,
) -> tuple_:
    """The four words of Philox-4x for the counter (c0, c1, c2, c3), keyed by a 64-bit `seed`.

    Shapes: all broadcast together.
    Dtypes: the width of `c0` decides, 32 or 64 bits; the result is uint32 or uint64.
    Raises: DtypeNotAllowed, InvalidOption.
    """
    rounds = _rounds(n_rounds, "philox")
    key = _integer(b, seed, "philox", "seed")
    names = ("c0", "c1", "c2", "c3")
    counter = [_integer(b, v, "philox", n) for v, n in zip((c0, c1, c2, c3), names, strict=True)]
    word = _word_of(counter[0], "philox")
    return tuple_(_generate(b, counter, _key_of(b, key, word), rounds, word))


def _words_at(b: Builder, seed: object, offset: object, n_rounds: object, function: str) -> Words:
    """The four 32-bit words at `offset`; a 64-bit offset fills two words of the counter."""
    rounds = _rounds(n_rounds, function)
    key = _integer(b, seed, function, "seed")
    position = _integer(b, offset, function, "offset")
    zero = b.constant(0, uint32)
    high = zero
    if position.dtype.primitive_bitwidth == 64:
        high = convert(b, binary(b, "RShift", convert(b, position, uint64), 32), uint32)
    counter = [convert(b, position, uint32), high, zero, zero]
    return _generate(b, counter, _key_of(b, key, uint32), rounds, uint32)


@surface()
def randint4x(b: Builder, seed: object, offset: object, n_rounds: object = 10) -> tuple_:
    """Four tiles of random uint32 in the shape of `offset`, cheaper than four `randint`.

    `seed` has up to 64 bits. Equal seed and offset give equal numbers.
    Raises: DtypeNotAllowed, InvalidOption.
    """
    return tuple_(_words_at(b, seed, offset, n_rounds, "randint4x"))


@surface()
def randint(b: Builder, seed: object, offset: object, n_rounds: object = 10) -> tensor:
    """Random uint32 in the shape of `offset`: the first tile of `randint4x`."""
    return _words_at(b, seed, offset, n_rounds, "randint")[0]


@surface()
def uint_to_uniform_float(b: Builder, x: object) -> tensor:
    """Random integers of 32 or 64 bits as fp32 in [0, 1).

    Raises: DtypeNotAllowed.
    """
    bits = _integer(b, x, "uint_to_uniform_float", "x")
    width = bits.dtype.primitive_bitwidth
    if width not in _UNIFORM_SCALE:
        raise DtypeNotAllowed(
            f"uint_to_uniform_float(): `x` is {bits.dtype}; it must have 32 or 64 bits",
            argument="x",
        )
    signed = convert(b, bits, int32 if width == 32 else int64)
    # -1 - x maps the negative half onto [0, max], and has no overflow, unlike -x.
    flipped = elementwise(b, "arith.xori", signed, b.constant(-1, signed.type))
    magnitude = select(b, binary(b, "Lt", signed, 0), flipped, signed)
    return binary(b, "Mult", convert(b, magnitude, float32), _UNIFORM_SCALE[width])


@surface()
def rand(b: Builder, seed: object, offset: object, n_rounds: object = 10) -> tensor:
    """Random fp32, uniform in [0, 1), in the shape of `offset`."""
    return uint_to_uniform_float(b, _words_at(b, seed, offset, n_rounds, "rand")[0])


@surface()
def rand4x(b: Builder, seed: object, offsets: object, n_rounds: object = 10) -> tuple_:
    """Four tiles of random fp32, uniform in [0, 1), cheaper than four `rand`."""
    words = _words_at(b, seed, offsets, n_rounds, "rand4x")
    return tuple_([uint_to_uniform_float(b, word) for word in words])


def _polar(b: Builder, u1: object, u2: object) -> tuple[tensor, tensor]:
    """The radius and the angle of the Box-Muller transform."""
    bounded = maximum(b, _LEAST_UNIFORM, u1)
    logarithm = elementwise(b, "math.log", bounded)
    radius = elementwise(b, "math.sqrt", binary(b, "Mult", -2.0, logarithm))
    return radius, binary(b, "Mult", _TWO_PI, u2)


@surface()
def pair_uniform_to_normal(b: Builder, u1: object, u2: object) -> tuple_:
    """Two independent standard normal numbers from two uniform ones (Box-Muller), fp32 or fp64.

    r = sqrt(-2 log max(u1, 1e-7)); the results are r cos(2 pi u2) and r sin(2 pi u2).
    """
    radius, angle = _polar(b, u1, u2)
    cosine, sine = elementwise(b, "math.cos", angle), elementwise(b, "math.sin", angle)
    return tuple_([binary(b, "Mult", radius, cosine), binary(b, "Mult", radius, sine)])


@surface()
def randn(b: Builder, seed: object, offset: object, n_rounds: object = 10) -> tensor:
    """Random fp32 of the standard normal distribution, in the shape of `offset`."""
    first, second, _, _ = _words_at(b, seed, offset, n_rounds, "randn")
    u1, u2 = uint_to_uniform_float(b, first), uint_to_uniform_float(b, second)
    radius, angle = _polar(b, u1, u2)
    return binary(b, "Mult", radius, elementwise(b, "math.cos", angle))


@surface()
def randn4x(b: Builder, seed: object, offset: object, n_rounds: object = 10) -> tuple_:
    """Four tiles of random fp32 of the standard normal distribution."""
    words = _words_at(b, seed, offset, n_rounds, "randn4x")
    u1, u2, u3, u4 = (uint_to_uniform_float(b, word) for word in words)
    first, second = pair_uniform_to_normal(b, u1, u2), pair_uniform_to_normal(b, u3, u4)
    return tuple_([*first, *second])
