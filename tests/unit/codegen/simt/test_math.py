"""Math of the language on the threads of a GPU: per register, as the interpreter has it."""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import check, random_array, simulated

SIZE = 256


@tilewright.jit
def float_kernel(x, y, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, a % b)
    tl.store(out + SIZE + at, tl.extra.libdevice.erfcx(a))
    tl.store(out + 2 * SIZE + at, tl.extra.libdevice.sub_rz(a, b))
    tl.store(out + 3 * SIZE + at, tl.extra.libdevice.tgamma(a))
    tl.store(out + 4 * SIZE + at, tl.math.asinh(a))


@tilewright.jit
def integer_kernel(x, y, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.extra.libdevice.brev(a))
    tl.store(out + SIZE + at, tl.extra.libdevice.byte_perm(a, b, 0x9C60))
    tl.store(out + 2 * SIZE + at, tl.extra.libdevice.mulhi(a, b))
    tl.store(out + 3 * SIZE + at, tl.extra.libdevice.rhadd(a, b))
    tl.store(out + 4 * SIZE + at, tl.extra.libdevice.ffs(a))


@tilewright.jit
def remainder_kernel(x, y, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at) % tl.load(y + at))


def test_functions_of_floats_run_on_every_register() -> None:
    x, y = random_array((SIZE,), "float32", 1, 9), random_array((SIZE,), "float32", 2, 3)
    out = np.zeros(5 * SIZE, np.float32)
    check(float_kernel, (1,), x, y, out, rtol=3e-7, num_warps=2, SIZE=SIZE)


def test_float_remainders_are_exact_for_great_quotients() -> None:
    x, y = random_array((SIZE,), "float32", 3, 3), random_array((SIZE,), "float32", 4, 3)
    x = (x * np.float32(1e30)).astype(np.float32)
    (*_, out), _ = simulated(remainder_kernel, (1,), [x, y, np.zeros_like(x)], SIZE=SIZE)
    np.testing.assert_array_equal(out, np.fmod(x, y))


def test_functions_of_integers_run_on_every_register() -> None:
    x, y = (random_array((SIZE,), "int32", seed, 1 << 30) for seed in (1, 2))
    out = np.zeros(5 * SIZE, np.int32)
    check(integer_kernel, (1,), x, y, out, num_warps=2, SIZE=SIZE)
