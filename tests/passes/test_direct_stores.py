"""direct_stores: sums that a loop's last step stores where the program wants them."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tests.asm.amx_host import use_modelled_amx
from tests.holes import before_a_hole
from tests.passes.lowered import named, nests, packing_products
from tilewright.jit import JITFunction
from tilewright.targets.cpu.ops import DotOp

F32 = np.zeros(1 << 16, np.float32)


@tilewright.jit
def product(
    a, b, c, M, N, K, pitch, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    FORM: tl.constexpr,
):  # fmt: skip
    """c = a @ b, one program a tile; FORM says what is done beside it."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    place = c + rows[:, None] * pitch + columns[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    if FORM == "holes":
        inside &= (columns % 2 == 0)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    if FORM == "ones":
        acc += 1
    for k in range(0, K, BK):
        if FORM == "sum":
            x_in, y_in = (k + steps)[None, :] < K, (k + steps)[:, None] < K
        else:
            x_in, y_in = steps[None, :] < K - k, steps[:, None] < K - k
        x = tl.load(a + (rows % M)[:, None] * K + k + steps[None, :], mask=x_in, other=0.0)
        y = tl.load(b + (k + steps)[:, None] * N + (columns % N)[None, :], mask=y_in, other=0.0)
        acc = tl.dot(x, y, acc)
    if FORM == "twice":
        acc *= 2
    if FORM == "read":
        old = tl.load(place, mask=inside, other=0.0)
        tl.store(place, acc, mask=inside)
        tl.store(place + M * pitch, old, mask=inside)
    else:
        tl.store(place, acc, mask=inside)


@tilewright.jit
def whole(a, b, c, K, SIZE: tl.constexpr, STEP: tl.constexpr):
    """c = a @ b without a mask: a deep loop, and one for the rest."""
    i, s = tl.arange(0, SIZE), tl.arange(0, STEP)
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, K, STEP):
        x = tl.load(a + i[:, None] * K + k + s[None, :])
        y = tl.load(b + (k + s)[:, None] * SIZE + i[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * SIZE + i[None, :], acc)


@tilewright.jit
def other_zeros(a, b, c, K, ZERO: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr):
    """c = a @ b, where what a mask hides is ZERO."""
    i, s = tl.arange(0, SIZE), tl.arange(0, STEP)
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, K, STEP):
        x = tl.load(a + i[:, None] * K + k + s[None, :], s[None, :] < K - k, other=ZERO)
        y = tl.load(b + (k + s)[:, None] * SIZE + i[None, :], s[:, None] < K - k, other=ZERO)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * SIZE + i[None, :], acc)


def targets(module: ModuleOp) -> list[bool]:
    """Of each product, whether it is told where its sum goes."""
    return [dot.target is not None for dot in packing_products(module)]


def lowered(form: str) -> ModuleOp:
    """C2 of `product`."""
    sizes = {"M": 100, "N": 100, "K": 100, "pitch": 100, "BM": 32, "BN": 64, "BK": 32}
    return nests(product, a=F32, b=F32, c=F32, **sizes, FORM=form)[0]


@pytest.mark.parametrize(("form", "count"), [("", 1), ("sum", 2), ("holes", 1)])
def test_a_sum_that_is_only_stored_is_told_where_to_go(form: str, count: int) -> None:
    module = lowered(form)
    assert targets(module) == [True] * count


@pytest.mark.parametrize("form", ["twice", "ones", "read"])
def test_a_sum_with_another_use_or_start_stays_in_its_place(form: str) -> None:
    assert targets(lowered(form)) == [False]


def run(
    kernel: JITFunction, form: str, shape: tuple[int, int, int], rng: np.random.Generator
) -> None:
    """Launch it on random matrices that end before holes, and compare what is stored."""
    m, n, k = shape
    a, b = (rng.standard_normal(size, dtype=np.float32) for size in ((m, k), (k, n)))
    x, y = (before_a_hole(each) if k else each for each in (a, b))
    pitch = n + 3
    c = np.full((2 * m, pitch), np.nan, np.float32)
    want = c.copy()
    exact = a.astype(np.float64) @ b
    seen = slice(None, n, 2) if form == "holes" else slice(None, n)
    want[:m, seen] = (exact * (2 if form == "twice" else 1) + (form == "ones"))[:, seen]
    grid = (tilewright.cdiv(m, 32) + 1, tilewright.cdiv(n, 64) + 1)
    kernel[grid](x, y, c, m, n, k, pitch, BM=32, BN=64, BK=32, FORM=form)
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("zero", "limited"), [(0, True), (0.0, True), (False, True), (1, False)])
def test_zero_is_zero_of_any_type(zero: float, limited: bool, rng) -> None:
    module = nests(other_zeros, a=F32, b=F32, c=F32, K=100, ZERO=zero, SIZE=32, STEP=64)[0]
    dots = [op for op in named(module, "cpu.dot") if isinstance(op, DotOp)]
    depths = [op.depth.owner for op in dots if op.depth is not None]
    assert all(isinstance(depth, Operation) for depth in depths) and len(depths) == len(dots)
    # Where nothing ends the sum early its depth is the tile's.
    assert {getattr(depth, "name", "") == "arith.constant" for depth in depths} == {not limited}
    a, b = (rng.standard_normal(size, dtype=np.float32) for size in ((32, 100), (100, 32)))
    c = np.full((32, 32), np.nan, np.float32)
    other_zeros[(1,)](before_a_hole(a), before_a_hole(b), c, 100, ZERO=zero, SIZE=32, STEP=64)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b + 28 * zero, rtol=1e-4, atol=1e-3)


SHAPES = [(1, 1, 0), (1, 1, 1), (32, 64, 32), (33, 65, 31), (5, 17, 200), (100, 130, 129)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("form", ["", "sum", "holes", "twice", "ones", "read"])
def test_what_is_stored_is_the_product_and_nothing_beyond_the_mask(form, shape, rng) -> None:
    run(product, form, shape, rng)


@pytest.mark.parametrize("depth", [0, 16, 112, 128, 144, 256])
def test_two_loops_store_once(depth: int, rng) -> None:
    a, b = (rng.standard_normal(size, dtype=np.float32) for size in ((64, depth), (depth, 64)))
    c = np.full((64, 64), np.nan, np.float32)
    whole[(1,)](a, b, c, depth, SIZE=64, STEP=16)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shift", [0, 1, 16, 63, 64, 4095, 4096, 4097])
@pytest.mark.parametrize("operand", ["a", "b"])
def test_a_result_over_an_operand_is_stored_when_that_is_read(operand, shift: int, rng) -> None:
    memory = rng.standard_normal(3 * 4096, dtype=np.float32)
    other = rng.standard_normal((64, 64), dtype=np.float32)
    mine = memory[4096:8192].reshape(64, 64)
    c = memory[4096 + shift - 64 : 8192 + shift - 64].reshape(64, 64)
    a, b = (mine, other) if operand == "a" else (other, mine)
    exact = a.astype(np.float64) @ b
    whole[(1,)](a, b, c, 64, SIZE=64, STEP=16)
    np.testing.assert_allclose(c, exact, rtol=1e-4, atol=1e-3)


@tilewright.jit
def overlapping(a, b, c, pitch, SIZE: tl.constexpr):
    """The rows of c overlap: those that are stored last stay."""
    i = tl.arange(0, SIZE)
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, SIZE, SIZE):
        x = tl.load(a + i[:, None] * SIZE + k + i[None, :])
        acc = tl.dot(x, tl.load(b + (k + i)[:, None] * SIZE + i[None, :]), acc)
    tl.store(c + i[:, None] * pitch + i[None, :], acc)


@pytest.mark.parametrize("pitch", [0, 1, 31, 32, 33, -32])
def test_rows_that_overlap_are_stored_in_order(pitch: int, rng) -> None:
    a, b = rng.standard_normal((2, 32, 32), dtype=np.float32)
    memory = np.zeros(3000, np.float32)
    overlapping[(1,)](a, b, memory[1100:], pitch, SIZE=32)
    exact = np.zeros(3000)
    for row, values in enumerate(a.astype(np.float64) @ b):
        start = 1100 + row * pitch
        exact[start : start + 32] = values
    np.testing.assert_allclose(memory, exact, rtol=1e-4, atol=1e-3)


@tilewright.jit
def counted(
    a,
    b,
    c,
    first,
    n,
    WHAT: tl.constexpr,
    WIDE: tl.constexpr,
    SIZE: tl.constexpr,
    STEP: tl.constexpr,
):
    """c = a @ b, of which masks show what counts up to the end of int32, and wraps around."""
    i = tl.arange(0, SIZE)
    number = (first + i).to(tl.int64) if WIDE else first + i
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for step in range(0, SIZE, STEP):
        k = step + tl.arange(0, STEP)
        along = (first + k).to(tl.int64) if WIDE else first + k
        at_x, at_y = a + i[:, None] * SIZE + k[None, :], b + k[:, None] * SIZE + i[None, :]
        if WHAT == "k":
            x = tl.load(at_x, mask=(along < n)[None, :], other=0.0)
            y = tl.load(at_y, mask=(along < n)[:, None], other=0.0)
        elif WHAT == "operands":
            x = tl.load(at_x, mask=(number < n)[:, None], other=0.0)
            y = tl.load(at_y, mask=(n > number)[None, :], other=0.0)
        else:
            x, y = tl.load(at_x), tl.load(at_y)
        acc = tl.dot(x, y, acc)
    shown = (number < n)[:, None] if WHAT == "rows" else (number < n)[None, :]
    tl.store(
        c + i[:, None] * SIZE + i[None, :], acc, shown if WHAT in ("rows", "columns") else None
    )


@pytest.mark.parametrize("step", [16, 32])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("what", ["rows", "columns", "k", "operands"])
@pytest.mark.parametrize(("first", "n"), [(0, 20), (2**31 - 10, 2**31 - 5), (-5, 3), (9, 2)])
def test_what_masks_show_behind_the_end_of_int32_is_multiplied_and_stored(
    first: int, n: int, what: str, wide: bool, step: int, rng
) -> None:
    a, b = rng.integers(-4, 5, (2, 32, 32)).astype(np.float32)
    c = np.full((32, 32), -1, np.float32)
    counted[(1,)](a, b, c, first, n, WHAT=what, WIDE=wide, SIZE=32, STEP=step)
    shown = (np.int64(first) + np.arange(32)).astype(np.int32) < n
    expected = {
        "rows": lambda: np.where(shown[:, None], a @ b, -1),
        "columns": lambda: np.where(shown, a @ b, -1),
        "k": lambda: (a * shown) @ (b * shown[:, None]),
        "operands": lambda: (a * shown[:, None]) @ (b * shown),
    }[what]()
    np.testing.assert_array_equal(c, expected)


@tilewright.jit
def two_depths(a, b, c, numbers, K, FORM: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr):
    """c = a @ b and as much of it again as FORM says, which is computed between the loops."""
    i, s = tl.arange(0, SIZE), tl.arange(0, STEP)
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, K, STEP):
        x = tl.load(a + i[:, None] * K + k + s[None, :], s[None, :] < K - k, other=0)
        y = tl.load(b + (k + s)[:, None] * SIZE + i[None, :], s[:, None] < K - k, other=0)
        acc = tl.dot(x, y, acc)
    start, end = 0, K // 2 + 3
    if FORM == "start":
        start = K // STEP * STEP // 2
    elif FORM == "branch":
        if K > 100:
            end -= 9
    elif FORM == "loaded":
        end = tl.load(numbers)
    elif FORM == "summed":
        end = tl.sum(tl.load(numbers + tl.arange(0, 4)))
    elif FORM == "counted":
        end = 0
        while end * end < K:
            end += 1
    end = tl.minimum(end, K)
    for k in range(start, end, STEP):
        x = tl.load(a + i[:, None] * K + k + s[None, :], s[None, :] < end - k, other=0)
        y = tl.load(b + (k + s)[:, None] * SIZE + i[None, :], s[:, None] < end - k, other=0)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * SIZE + i[None, :], acc)


@pytest.mark.parametrize("is_modelled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("form", ["end", "start", "branch", "loaded", "summed", "counted"])
def test_the_bounds_of_a_later_loop_may_be_computed_between_the_loops(
    form: str, dtype: str, is_modelled: bool, rng, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_modelled:
        use_modelled_amx(monkeypatch)
    for depth in (0, 1, 64, 200):
        a, b = (rng.integers(-3, 4, size).astype(dtype) for size in ((64, depth), (depth, 64)))
        numbers = np.full(4, depth // 4, np.int32)
        c = np.full((64, 64), 77, np.float32)
        two_depths[(1,)](a, b, c, numbers, depth, FORM=form, SIZE=64, STEP=32)
        start = depth // 32 * 32 // 2 if form == "start" else 0
        ends = {"loaded": depth // 4, "summed": depth // 4 * 4, "counted": int(np.ceil(depth**0.5))}
        end = ends.get(form, depth // 2 + 3 - (9 if form == "branch" and depth > 100 else 0))
        again = slice(start, min(end, depth))
        x, y = a.astype(np.float32), b.astype(np.float32)
        np.testing.assert_array_equal(c, x @ y + x[:, again] @ y[again], f"{form}, {depth}")
