"""Folds end where their masks do, with the bits of folds to the end; hidden rows touch nothing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

import tilewright
import tilewright.language as tl
from tests.holes import before_a_hole
from tests.passes.lowered import named, nests
from tilewright.ops.creation.ir import constant_of
from tilewright.targets.cpu.nests.masked_values import Reach, computed

BLOCK = 1024
ROWS = 4
LENGTHS = (0, 1, 63, 64, 65, 576, 1000, 1024)
BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.zeros(1 << 16, np.float32)
I32 = np.zeros(1 << 16, np.int32)


@tilewright.jit
def total(x, OTHER: tl.constexpr, out, n, BLOCK: tl.constexpr):
    """A sum whose masked elements are OTHER."""
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < n, other=OTHER), 0))


@tilewright.jit
def extremes(x, OTHER: tl.constexpr, out, n, BLOCK: tl.constexpr):
    """A maximum and a minimum of masked elements."""
    i = tl.arange(0, BLOCK)
    loaded = tl.load(x + i, mask=i < n, other=OTHER)
    tl.store(out, tl.max(loaded, 0))
    tl.store(out + 1, tl.min(loaded, 0))


@tilewright.jit
def products(w, x, out, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = w[rows, n] @ x, all masked."""
    r, i = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (r[:, None] < rows) & (i[None, :] < n)
    loaded = tl.load(w + r[:, None] * n + i[None, :], mask=mask, other=0.0).to(tl.float32)
    sums = tl.sum(loaded * tl.load(x + i, mask=i < n, other=0.0)[None, :], 1)
    tl.store(out + r, sums, mask=r < rows)


@tilewright.jit
def column_products(w, x, out, k, n, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    """out = x @ w[k, n], all masked."""
    i, c = tl.arange(0, BLOCK_K), tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (i[:, None] < k) & (c[None, :] < n)
    loaded = tl.load(w + i[:, None] * n + c[None, :], mask=mask, other=0.0).to(tl.float32)
    sums = tl.sum(tl.load(x + i, mask=i < k, other=0.0)[:, None] * loaded, 0)
    tl.store(out + c, sums, mask=c < n)


@tilewright.jit
def variance(x, out, n, BLOCK: tl.constexpr):
    """Squares of differences, with zeros chosen behind the end."""
    i = tl.arange(0, BLOCK)
    mask = i < n
    loaded = tl.load(x + i, mask=mask, other=0.0)
    difference = tl.where(mask, loaded - tl.sum(loaded, 0) / n, 0.0)
    tl.store(out, tl.sum(difference * difference, 0) / n)


@tilewright.jit
def exponentials(x, out, n, BLOCK: tl.constexpr):
    """What a masked element becomes depends on the row's maximum: NaN where that is infinite."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i, mask=i < n, other=-float("inf"))
    tl.store(out, tl.sum(tl.exp(row - tl.max(row, 0)), 0))


@tilewright.jit
def scaled_exponentials(x, out, n, scale, BLOCK: tl.constexpr):
    """A softmax that multiplies by a scalar first and keeps the row's exponentials."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i, mask=i < n, other=-float("inf")) * scale
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(out + i, powers / tl.sum(powers, 0))


@tilewright.jit
def gated_norm(x, y, out, n, BLOCK: tl.constexpr):
    """A sum of what is stored where the mask holds, and of its squares; tiles are read again."""
    i = tl.arange(0, BLOCK)
    mask = i < n
    row = tl.load(x + i, mask=mask, other=0.0)
    gated = 0.5 * row * (1.0 + tl.erf(row * 0.7071067811865476))
    gated += tl.load(y + i, mask=mask, other=0.0)
    tl.store(out + i, gated, mask=mask)
    centred = tl.where(mask, gated - tl.sum(gated, 0) / n, 0.0)
    tl.store(out + BLOCK + i, centred * tl.rsqrt(tl.sum(centred * centred, 0) / n + 1e-5))


@tilewright.jit
def gated_squares(x, z, out, n, BLOCK: tl.constexpr):
    """The mean square of what a sigmoid gates, which is read again."""
    i = tl.arange(0, BLOCK)
    gate = tl.load(z + i, mask=i < n, other=0.0)
    row = tl.load(x + i, mask=i < n, other=0.0) * (gate * tl.sigmoid(gate))
    tl.store(out + i, row * tl.rsqrt(tl.sum(row * row, 0) / n), mask=i < n)


@tilewright.jit
def unmasked_factor(w, x, out, n, BLOCK: tl.constexpr):
    """Zero times whatever `x` holds behind the end: NaN where that is infinite."""
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(w + i, mask=i < n, other=0.0) * tl.load(x + i), 0))


@tilewright.jit
def doubled(x, out, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = 2 x over masked rows and columns."""
    r, i = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (r[:, None] < rows) & (i[None, :] < n)
    at = r[:, None] * n + i[None, :]
    tl.store(out + at, 2 * tl.load(x + at, mask=mask), mask=mask)


@tilewright.jit
def same_in_a_row(x, out, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A condition of rows that is computed for each element."""
    r, i = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    row = r[:, None] + (i - i)[None, :]
    mask = (row < rows) & (i[None, :] < n)
    tl.store(out + r, tl.sum(tl.load(x + row * n + i[None, :], mask=mask, other=0.0), 1))


def fixed_ends(module: ModuleOp, size: int) -> list[Operation]:
    """The loops that run to a constant end of `size`."""
    return [loop for loop in named(module, "scf.for") if constant_of(loop.operands[1]) == size]


def bits(array: np.ndarray) -> bytes:
    return array.tobytes()


def test_a_sum_of_masked_elements_ends_with_its_mask() -> None:
    module, _ = nests(total, x=F32, OTHER=0.0, out=F32, n=1000, BLOCK=BLOCK)
    assert not fixed_ends(module, BLOCK)


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float16])
def test_products_end_with_their_rows_and_full_rows_have_no_masks(dtype: np.dtype) -> None:
    w = F32.astype(dtype)
    module, _ = nests(products, w=w, x=F32, out=F32, rows=17, n=576, ROWS=ROWS, BLOCK=BLOCK)
    assert not fixed_ends(module, BLOCK)
    loads = [op for op in named(module, "cpu.load") if len(op.operands) == 1]
    assert len(loads) >= 2


@pytest.mark.parametrize(("dtype", "fetches"), [(np.float32, 0), (BF16, 1), (np.float16, 1)])
def test_narrow_rows_are_fetched_ahead(dtype: np.dtype, fetches: int) -> None:
    w = F32.astype(dtype)
    module, _ = nests(products, w=w, x=F32, out=F32, rows=17, n=576, ROWS=ROWS, BLOCK=BLOCK)
    assert len(named(module, "cpu.prefetch")) == fetches


def test_a_fold_along_an_outer_axis_ends_with_its_mask() -> None:
    values = {"w": F32, "x": F32, "out": F32, "k": 100, "n": 128}
    module, _ = nests(column_products, **values, BLOCK_K=128, BLOCK_N=256)
    assert not fixed_ends(module, 128)


def test_zeros_that_are_chosen_end_a_fold() -> None:
    module, _ = nests(variance, x=F32, out=F32, n=1000, BLOCK=BLOCK)
    assert not fixed_ends(module, BLOCK)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (total, {"x": F32, "OTHER": 1.0, "out": F32}),
        (total, {"x": I32, "OTHER": 1, "out": I32}),
        (extremes, {"x": F32, "OTHER": 0.0, "out": F32}),
        (unmasked_factor, {"w": F32, "x": F32, "out": F32}),
    ],
)
def test_what_masked_elements_change_is_folded_to_the_end(
    kernel: tilewright.JITFunction, values: dict[str, object]
) -> None:
    module, _ = nests(kernel, **values, n=1000, BLOCK=BLOCK)
    assert fixed_ends(module, BLOCK)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (exponentials, {"x": F32, "out": F32}),
        (gated_norm, {"x": F32, "y": F32, "out": F32}),
        (scaled_exponentials, {"x": F32, "out": F32, "scale": 0.5}),
        (gated_squares, {"x": F32, "z": F32, "out": F32}),
    ],
)
def test_tiles_behind_the_end_are_numbers_and_not_computed(
    kernel: tilewright.JITFunction, values: dict[str, object]
) -> None:
    module, _ = nests(kernel, **values, n=576, BLOCK=BLOCK)
    dear = [op for op in named(module, "math.exp") + named(module, "math.erf")]
    assert dear
    loops = {id(loop) for loop in fixed_ends(module, BLOCK)}
    assert not [op for op in dear if id(op.parent_op()) in loops]


@tilewright.jit
def chain(x, out, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Sums, each of a tile that is made of the one before."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i, mask=i < n, other=0.0)
    for _ in tl.static_range(STEPS):
        row = row * 0.5 - tl.sum(row, 0) / n
    tl.store(out + i, row, mask=i < n)


def test_what_is_looked_at_grows_with_a_chain_and_not_with_its_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: dict[int, int] = {}
    covers = Reach.covers
    for steps in (20, 40):
        looks[steps] = 0

        def counted(reach: Reach, value: SSAValue, steps: int = steps) -> bool:
            looks[steps] += 1
            return covers(reach, value)

        monkeypatch.setattr(Reach, "covers", counted)
        nests(chain, x=F32, out=F32, n=1000, STEPS=steps, BLOCK=BLOCK)
    assert 0 < looks[40] < 2.5 * looks[20]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("fill", [-np.inf, np.inf, np.nan, -0.0, 3.0])
@pytest.mark.parametrize("scale", [0.5, 0.0, -1.0, np.inf, np.nan])
def test_exponentials_are_those_of_all_elements(scale: float, fill: float, n: int) -> None:
    x = np.full(BLOCK, fill, np.float32)
    outs = np.full((2, BLOCK), 7, np.float32)
    scaled_exponentials[(1,)](x, outs[0], n, scale, BLOCK=BLOCK)
    with np.errstate(all="ignore"):
        scaled_exponentials.interpret[(1,)](x, outs[1], n, scale, BLOCK=BLOCK)
    np.testing.assert_allclose(outs[0], outs[1], 1e-6)
    known = ~np.isnan(outs[1])
    assert bits(np.signbit(outs[0][known])) == bits(np.signbit(outs[1][known]))


@pytest.mark.parametrize("n", LENGTHS[1:])
def test_tiles_that_are_read_again_are_those_of_all_elements(n: int) -> None:
    x, y = np.random.default_rng(n).standard_normal((2, n), np.float32)
    outs = np.full((2, 2 * BLOCK), 7, np.float32)
    gated_norm[(1,)](before_a_hole(x), before_a_hole(y), outs[0], n, BLOCK=BLOCK)
    gated_norm.interpret[(1,)](x, y, outs[1], n, BLOCK=BLOCK)
    np.testing.assert_allclose(outs[0], outs[1], 1e-4, 1e-5)
    assert (outs[0][n:BLOCK] == 7).all()


@tilewright.jit
def float_functions(x, out, BLOCK: tl.constexpr):
    """What functions make of zeros, ones and infinities, in the order of `FUNCTIONS`."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i)
    tl.store(out + i, tl.exp(row))
    tl.store(out + BLOCK + i, tl.exp2(row))
    tl.store(out + 2 * BLOCK + i, tl.erf(row))
    tl.store(out + 3 * BLOCK + i, tl.extra.libdevice.tanh(row))
    tl.store(out + 4 * BLOCK + i, tl.sin(row))
    tl.store(out + 5 * BLOCK + i, tl.sqrt(row))


FUNCTIONS = ("exp", "exp2", "erf", "tanh", "sin", "sqrt")
PLAIN = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf])


@pytest.mark.parametrize("lanes", [8, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_known_are_those_that_are_computed(dtype: np.dtype, lanes: int) -> None:
    x = np.resize(PLAIN, lanes).astype(dtype)
    out = np.full((len(FUNCTIONS), lanes), 7, dtype)
    float_functions[(1,)](x, out, BLOCK=lanes)
    known = 0
    for row, name in zip(out, FUNCTIONS, strict=True):
        for number, found in zip(x, row, strict=True):
            expected = computed(f"math.{name}", [float(number)])
            if expected is not None:
                known += 1
                assert bits(found) == bits(np.asarray(expected, dtype)), (name, number)
    assert known > lanes


def test_rows_that_no_store_writes_are_not_visited() -> None:
    module, _ = nests(doubled, x=F32, out=F32, rows=17, n=1000, ROWS=16, BLOCK=BLOCK)
    assert not fixed_ends(module, 16)


@pytest.mark.parametrize("other", [0.0, -0.0, 1.0])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("fill", [-0.0, 0.0, np.nan, np.inf, 3.0])
def test_sums_have_the_bits_of_sums_to_the_end(fill: float, n: int, other: float) -> None:
    x = np.full(BLOCK, fill, np.float32)
    outs = np.full((2, 1), 7, np.float32)
    total[(1,)](x, other, outs[0], n, BLOCK=BLOCK)
    total.interpret[(1,)](x, other, outs[1], n, BLOCK=BLOCK)
    assert np.isnan(outs).all() or bits(outs[0]) == bits(outs[1])


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint16, np.float32, np.float16])
@pytest.mark.parametrize("n", LENGTHS)
def test_extremes_are_those_of_all_elements(n: int, dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(n)
    x = rng.integers(-100, 100, BLOCK).astype(dtype)
    for other in (0, 5, -float("inf"), float("inf")):
        if np.isinf(other) and not np.issubdtype(dtype, np.floating):
            continue
        outs = np.full((2, 2), 7, dtype)
        extremes[(1,)](x, other, outs[0], n, BLOCK=BLOCK)
        extremes.interpret[(1,)](x, other, outs[1], n, BLOCK=BLOCK)
        assert bits(outs[0]) == bits(outs[1])


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float16])
@pytest.mark.parametrize("n", LENGTHS[1:])
@pytest.mark.parametrize("rows", [1, 4, 17])
def test_products_are_right(rows: int, n: int, dtype: np.dtype) -> None:
    rng = np.random.default_rng(n)
    w = rng.integers(-8, 8, (rows, n)).astype(dtype)
    x = rng.integers(-8, 8, n).astype(np.float32)
    out = np.full(rows + 3, 7, np.float32)
    grid = (tilewright.cdiv(rows, ROWS),)
    products[grid](w, x, out, rows, n, ROWS=ROWS, BLOCK=BLOCK)
    np.testing.assert_array_equal(out[:rows], w.astype(np.float32) @ x)
    assert (out[rows:] == 7).all()
    out = np.full(rows + 3, 7, np.float32)
    w = w.reshape(n, rows)
    grid = (tilewright.cdiv(rows, 64),)
    column_products[grid](w, x, out, n, rows, BLOCK_K=BLOCK, BLOCK_N=64)
    np.testing.assert_array_equal(out[:rows], x @ w.astype(np.float32))
    assert (out[rows:] == 7).all()


def test_what_lies_behind_a_mask_still_counts_where_it_is_multiplied() -> None:
    w, x = np.ones(BLOCK, np.float32), np.ones(BLOCK, np.float32)
    x[-1] = np.inf
    out = np.zeros(1, np.float32)
    unmasked_factor[(1,)](w, x, out, 64, BLOCK=BLOCK)
    assert np.isnan(out[0])


def test_a_condition_of_rows_may_be_computed_for_each_element() -> None:
    x, out = np.arange(4000, dtype=np.float32), np.zeros(ROWS, np.float32)
    same_in_a_row[(1,)](x, out, 3, 1000, ROWS=ROWS, BLOCK=BLOCK)
    np.testing.assert_array_equal(out[:3], x.reshape(4, 1000)[:3].sum(1))
    assert out[3] == 0


@pytest.mark.parametrize(("rows", "n"), [(1, 1000), (16, 17), (17, 1000), (33, 4097)])
def test_masked_rows_and_columns_keep_what_lies_there(rows: int, n: int) -> None:
    x = np.arange((rows + 1) * n, dtype=np.float32).reshape(rows + 1, n)
    out = np.full_like(x, -1)
    doubled[(tilewright.cdiv(rows, 16),)](x, out, rows, n, ROWS=16, BLOCK=8192)
    np.testing.assert_array_equal(out[:rows], 2 * x[:rows])
    assert (out[rows] == -1).all()


@tilewright.jit
def shown(x, out, first, n, R: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr):
    """Sums of rows or columns whose numbers may count up to the end of int32, and wrap around."""
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    number = first + (r if AXIS == 0 else c)
    loaded = tl.load(x + r * C + c, mask=number < n, other=0.0)
    tl.store(out + tl.arange(0, C if AXIS == 0 else R), tl.sum(loaded, AXIS))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("first", "n"), [(0, 33), (2**31 - 10, 2**31 - 5), (-5, 20), (5, -3)])
def test_folds_take_what_a_mask_shows_again_behind_the_end_of_int32(
    axis: int, first: int, n: int, rng: np.random.Generator
) -> None:
    x = rng.integers(-8, 9, (64, 64)).astype(np.float32)
    out = np.zeros(64, np.float32)
    shown[(1,)](x, out, first, n, R=64, C=64, AXIS=axis)
    is_shown = (np.int64(first) + np.arange(64)).astype(np.int32) < n
    expected = (x * (is_shown[:, None] if axis == 0 else is_shown)).sum(axis)
    np.testing.assert_array_equal(out, expected)
