"""Loads and stores of one program that overlap: a load completes before a later store."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import check, random_array

DTYPES = ["int8", "float16", "float32", "int64"]


@tilewright.jit
def transpose(p, A: tl.constexpr):
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    tl.store(p + r + c * A, tl.load(p + c + r * A))


@tilewright.jit
def transpose_blocks(p, A: tl.constexpr):
    source = tl.make_block_ptr(p, (A, A), (A, 1), (0, 0), (A, A), (1, 0))
    target = tl.make_block_ptr(p, (A, A), (1, A), (0, 0), (A, A), (0, 1))
    tl.store(target, tl.load(source))


@tilewright.jit
def roll(p, A: tl.constexpr):
    """Columns move by one, the last to the front; then rows by three."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    tl.store(p + r * A + (c + 1) % A, tl.load(p + r * A + c))
    tl.store(p + (r + 3) % A * A + c, tl.load(p + r * A + c))


@tilewright.jit
def reverse(p, A: tl.constexpr):
    i = tl.arange(0, A * A)
    tl.store(p + A * A - 1 - i, tl.load(p + i))


@tilewright.jit
def shift_masked(p, A: tl.constexpr):
    """Each row moves by one where the mask says so, and its last place is filled."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    moved = tl.load(p + r * A + c + 1, mask=c < A - 1, other=7)
    tl.store(p + r * A + c, moved, mask=(r % 3 != 1) & (c < A))


@tilewright.jit
def solid(p, A: tl.constexpr):
    """Three dims, each order of them."""
    a, b, c = tl.arange(0, 4)[:, None, None], tl.arange(0, A)[None, :, None], tl.arange(0, 8)
    c = c[None, None, :]
    x = tl.load(p + a * A * 8 + b * 8 + c)
    tl.store(p + c * 4 * A + b * 4 + a, x)
    y = tl.load(p + a + c * 4 + b * 32)
    tl.store(p + b + a * A + c * 4 * A, y)


@tilewright.jit
def written_twice(p, A: tl.constexpr):
    """What is written last stays, in whatever order the tile lies."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    x = tl.load(p + r * A + c)
    tl.store(p + r * A + c, x + 1)
    tl.store(p + r + c * A, x)
    y = tl.load(p + (r + 1) % A * A + c)
    tl.store(p + r + c * A, y)


@tilewright.jit
def walked(p, n, A: tl.constexpr):
    """Blocks that overlap by half move on in a loop, in one branch of it."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    for i in range(n):
        x = tl.load(p + i * A // 2 + r * A + c)
        if i % 2 == 0:
            tl.store(p + i * A // 2 + r + c * A, x)
        else:
            tl.store(p + i * A // 2 + 1 + r * A + c, x)


@tilewright.jit
def state(p, x, A: tl.constexpr):
    """A window moves by two and takes new columns, as convolutions of states do."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    old = tl.load(p + r * A + c + 2, mask=c + 2 < A, other=0)
    new = tl.load(x + r * 2 + c + 2 - A, mask=c + 2 >= A, other=0)
    tl.store(p + r * A + c, tl.where(c + 2 < A, old, new))


KERNELS = [transpose, transpose_blocks, roll, reverse, shift_masked, solid, written_twice]


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("size", [2, 4, 16, 64])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_what_overlaps_is_read_first(kernel: object, size: int, num_warps: int) -> None:
    dtype = DTYPES[(size + num_warps + KERNELS.index(kernel)) % len(DTYPES)]
    x = random_array((max(size * size, 32 * size) + size,), dtype)
    check(kernel, (1,), x, size, num_warps=num_warps)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("size", [4, 32])
def test_loops_and_states_read_first(size: int, num_warps: int) -> None:
    x = random_array((size * size * 4,), "float32")
    check(walked, (1,), x, 5, size, num_warps=num_warps)
    new = random_array((size * 2,), "float32")
    check(state, (1,), x, new, size, num_warps=num_warps)


@tilewright.jit
def widened(p, A: tl.constexpr):
    i = tl.arange(0, A)
    tl.store(p.to(tl.pointer_type(tl.float32)) + i, tl.load(p + i).to(tl.float32))


@tilewright.jit
def narrowed(p, A: tl.constexpr):
    i = tl.arange(0, A)
    tl.store(p.to(tl.pointer_type(tl.float16)) + i, tl.load(p + i).to(tl.float16))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("size", [2, 128, 1024])
def test_a_tile_changes_its_width_in_place(size: int, num_warps: int) -> None:
    check(widened, (1,), random_array((2 * size,), "float16"), size, num_warps=num_warps)
    check(narrowed, (1,), random_array((size,), "float32"), size, num_warps=num_warps)


@tilewright.jit
def product_in_place(a, b, A: tl.constexpr):
    """Both operands are overwritten before and behind the product that takes them."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    x = tl.load(a + r * A + c)
    y = tl.load(b + r * A + c)
    tl.store(a + r + c * A, y)
    z = tl.dot(x, y)
    tl.store(b + r + c * A, z.to(tl.float16))


@tilewright.jit
def products_in_place(a, b, n, A: tl.constexpr):
    """A block is multiplied into itself, again and again."""
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    for i in range(n):
        x = tl.load(a + r * A + c)
        y = tl.load(b + i * A * A + r * A + c)
        tl.store(a + r * A + c, (tl.dot(x, y) * 0.125).to(tl.float16))


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("size", [16, 64, 128])
def test_operands_are_read_before_they_are_overwritten(size: int, num_warps: int) -> None:
    a, b = (random_array((3 * size * size,), "float16", seed, 2) for seed in (1, 2))
    check(product_in_place, (1,), a, b, size, num_warps=num_warps, rtol=1e-2, atol=2e-2)
    check(products_in_place, (1,), a, b, 3, size, num_warps=num_warps, rtol=2e-2, atol=5e-2)


@tilewright.jit
def through_both(p, q, A: tl.constexpr):
    i = tl.arange(0, A)
    tl.store(q + i, tl.load(p + i) + 1)


def test_two_arguments_may_be_the_same_elements() -> None:
    x = np.arange(512, dtype=np.float32)
    expected = x + 1
    check(through_both, (1,), x, x, 512)
    through_both.interpret[(1,)](x, x, 512)
    np.testing.assert_array_equal(x, expected)


@tilewright.jit
def change_places(p, q, n, A: tl.constexpr):
    """What one iteration writes through a name, the next one reads through the other."""
    i = tl.arange(0, A)
    source, target = p, q
    for _ in range(n):
        tl.store(target + A - 1 - i, tl.load(source + i) + 1)
        source, target = target, source


@tilewright.jit
def change_places_in_a_while(p, q, n, A: tl.constexpr):
    i = tl.arange(0, A)
    source, target, left = p, q, n
    while left > 0:
        if left % 3 == 1:
            source, target = target, source
        tl.store(target + A - 1 - i, tl.load(source + i) + 1)
        source, target, left = target, source, left - 1


@pytest.mark.parametrize("kernel", [change_places, change_places_in_a_while])
@pytest.mark.parametrize("size", [64, 256])
def test_pointers_that_change_places_are_read_behind_what_they_wrote(
    kernel: object, size: int
) -> None:
    first, second = random_array((size,), "int32"), random_array((size,), "int32")
    check(kernel, (1,), first, second, 5, size, num_warps=4)
