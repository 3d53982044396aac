"""Random numbers against a reference in NumPy integers, and published vectors."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.emission import Emission
from tests.ops.harness import interpret
from tilewright.language.core import float32, int32, uint32, uint64
from tilewright.support.errors import DtypeNotAllowed, InvalidOption

N = 64
CONSTANTS = {
    32: ((0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    64: ((0xD2E7470EE14C6C93, 0xCA5A826395121157), (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)),
}


def philox(counter: list[int], key: list[int], width: int = 32, rounds: int = 10) -> list[int]:
    """Philox-4x on Python integers."""
    mask = (1 << width) - 1
    factors, steps = CONSTANTS[width]
    c, k = list(counter), list(key)
    for _ in range(rounds):
        p0, p1 = factors[0] * c[0], factors[1] * c[2]
        c = [(p1 >> width) ^ c[1] ^ k[0], p1 & mask, (p0 >> width) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + steps[0]) & mask, (k[1] + steps[1]) & mask]
    return c


def randint_reference(seed: int, offset: int, rounds: int = 10) -> list[int]:
    seed, offset = seed % 2**64, offset % 2**64
    counter = [offset & 0xFFFFFFFF, offset >> 32, 0, 0]
    return philox(counter, [seed & 0xFFFFFFFF, seed >> 32], rounds=rounds)


# Known answers of the authors of Philox (Random123): counter, key, result.
VECTORS_32 = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]
VECTORS_64 = [
    (
        [0] * 4,
        [0] * 2,
        [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B],
    ),
]


@tilewright.jit
def philox_kernel(counter, key, out):
    c0, c1, c2, c3 = (
        tl.load(counter),
        tl.load(counter + 1),
        tl.load(counter + 2),
        tl.load(counter + 3),
    )
    r0, r1, r2, r3 = tl.philox_impl(c0, c1, c2, c3, tl.load(key), tl.load(key + 1))
    tl.store(out, r0)
    tl.store(out + 1, r1)
    tl.store(out + 2, r2)
    tl.store(out + 3, r3)


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS_32)
def test_philox_of_32_bits_gives_the_published_vectors(
    counter: list[int], key: list[int], expected: list[int]
) -> None:
    assert philox(counter, key) == expected
    out = np.zeros(4, np.uint32)
    interpret(philox_kernel, (1,), np.array(counter, np.uint32), np.array(key, np.uint32), out)
    assert out.tolist() == expected


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS_64)
def test_philox_of_64_bits_gives_the_published_vectors(
    counter: list[int], key: list[int], expected: list[int]
) -> None:
    assert philox(counter, key, 64) == expected
    out = np.zeros(4, np.uint64)
    interpret(philox_kernel, (1,), np.array(counter, np.uint64), np.array(key, np.uint64), out)
    assert out.tolist() == expected


@tilewright.jit
def randint_kernel(seed, first, out, size: tl.constexpr, rounds: tl.constexpr):
    offsets = tl.arange(0, size)
    tl.store(out + offsets, tl.randint(seed, first + offsets, rounds))


@pytest.mark.parametrize("rounds", [10, 7])
@pytest.mark.parametrize("seed", [0, 42, -1, 0xFFFFFFFF, 0x0000000FCAFEB0BA, 2**63 + 5])
def test_randint_is_bit_exact(seed: int, rounds: int) -> None:
    out = np.zeros(N, np.uint32)
    interpret(randint_kernel, (1,), seed, 0, out, size=N, rounds=rounds)
    assert out.tolist() == [randint_reference(seed, i, rounds)[0] for i in range(N)]


def test_a_64_bit_offset_fills_two_words_of_the_counter() -> None:
    first = 2**35 + 3
    out = np.zeros(N, np.uint32)
    interpret(randint_kernel, (1,), 7, first, out, size=N, rounds=10)
    assert out.tolist() == [randint_reference(7, first + i)[0] for i in range(N)]


@tilewright.jit
def four_kernel(seed, words, uniform, normal, size: tl.constexpr):
    offsets = tl.arange(0, size)
    a, b, c, d = tl.randint4x(seed, offsets)
    e, f, g, h = tl.rand4x(seed, offsets)
    i, j, k, m = tl.randn4x(seed, offsets)
    for n in tl.static_range(4):
        tl.store(words + n * size + offsets, (a, b, c, d)[n])
        tl.store(uniform + n * size + offsets, (e, f, g, h)[n])
        tl.store(normal + n * size + offsets, (i, j, k, m)[n])


def uniform_reference(words: np.ndarray) -> np.ndarray:
    signed = words.view(np.int32)
    magnitude = np.where(signed < 0, -(signed + 1), signed)
    return magnitude.astype(np.float32) * np.float32(4.6566127342e-10)


def normal_reference(u1: np.ndarray, u2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.maximum(u1, 1e-7).astype(np.float64), 2 * np.pi * u2.astype(np.float64)
    radius = np.sqrt(-2 * np.log(a))
    return radius * np.cos(b), radius * np.sin(b)


def test_the_four_streams_agree_with_the_reference() -> None:
    words, uniform, normal = (np.zeros((4, N), t) for t in (np.uint32, np.float32, np.float32))
    interpret(four_kernel, (1,), 11, words, uniform, normal, size=N)
    expected = np.array([randint_reference(11, i) for i in range(N)], np.uint32).T
    assert np.array_equal(words, expected)
    assert np.array_equal(uniform, uniform_reference(expected))
    assert (uniform >= 0).all()
    assert (uniform < 1).all()
    first = normal_reference(uniform[0], uniform[1])
    second = normal_reference(uniform[2], uniform[3])
    np.testing.assert_allclose(normal, [*first, *second], rtol=1e-4, atol=1e-5)


@tilewright.jit
def rand_kernel(seed, uniform, normal, size: tl.constexpr):
    offsets = tl.arange(0, size)
    tl.store(uniform + offsets, tl.rand(seed, offsets))
    tl.store(normal + offsets, tl.randn(seed, offsets))


def test_rand_and_randn_are_the_first_of_their_four() -> None:
    words, wide, normals = (np.zeros((4, N), t) for t in (np.uint32, np.float32, np.float32))
    interpret(four_kernel, (1,), 5, words, wide, normals, size=N)
    uniform, normal = np.zeros(N, np.float32), np.zeros(N, np.float32)
    interpret(rand_kernel, (1,), 5, uniform, normal, size=N)
    assert np.array_equal(uniform, wide[0])
    assert np.array_equal(normal, normals[0])


def test_many_normal_numbers_have_mean_0_and_deviation_1() -> None:
    size = 1 << 14
    uniform, normal = np.zeros(size, np.float32), np.zeros(size, np.float32)
    interpret(rand_kernel, (1,), 123, uniform, normal, size=size)
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03
    assert abs(uniform.mean() - 0.5) < 0.01


@pytest.mark.parametrize("value", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_uniform_floats_stay_below_1(value: int) -> None:
    bits = np.array([value], np.int32).view(np.uint32)
    (got,) = uniform_reference(bits)
    assert 0 <= got < 1


def test_results_have_the_shape_of_the_offset() -> None:
    emission = Emission()
    seed, offset = emission.value(int32), emission.value(int32, 4, 8)
    drawn = emission.call("rand", seed, offset)
    assert drawn.type.extents == (4, 8)  # type: ignore[union-attr]
    assert drawn.dtype == float32  # type: ignore[union-attr]
    assert emission.call("randint", seed, offset).dtype == uint32  # type: ignore[union-attr]


def test_philox_follows_the_width_of_the_counter() -> None:
    emission = Emission()
    seed, wide = emission.value(int32), emission.value(uint64, 4)
    words = emission.call("philox", seed, wide, 0, 0, 0)
    assert [word.dtype for word in words] == [uint64] * 4  # type: ignore[union-attr]


def test_an_overflow_of_philox_is_no_overflow_of_the_user() -> None:
    emission = Emission({"debug": True, "sanitize_overflow": True})
    emission.call("randint", emission.value(int32), emission.value(int32, 8))
    assert "tt.assert" not in emission.names()


def test_a_float_offset_is_refused() -> None:
    emission = Emission()
    with pytest.raises(DtypeNotAllowed, match="`offset` is fp32"):
        emission.call("rand", 1, emission.value(float32, 4))


def test_a_negative_number_of_rounds_is_refused() -> None:
    emission = Emission()
    with pytest.raises(InvalidOption, match="n_rounds"):
        emission.call("rand", 1, emission.value(int32, 4), -1)
