"""loop_ends: which k loops without masks may take a last step that is longer, and what it reads."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.asm.amx_host import use_modelled_amx
from tests.holes import before_a_hole
from tests.passes.lowered import named, tiles
from tilewright.ir.types import shape_of
from tilewright.passes.fold_additions import FoldAdditions
from tilewright.targets.cpu.schedule.widen_k_loops import Reads, widen_k_loops

BF16 = np.zeros(1 << 16, ml_dtypes.bfloat16)
FORMS = ("pointers", "counted", "transposed", "turned", "masked rows")
KEPT = ("used", "ones", "odd step", "same")


@tilewright.jit
def unmasked(
    a, b, c, K, SIDE: tl.constexpr, DEEP: tl.constexpr, FORM: tl.constexpr, FIRST: tl.constexpr
):
    """c = a @ b[K, SIDE], or a @ b[SIDE, K].T where FORM says so; `FIRST` is what k counts from."""
    i, s = tl.arange(0, SIDE), tl.arange(0, DEEP)
    acc, last = tl.zeros((SIDE, SIDE), tl.float32), 0
    pa = a + i[:, None] * K + s[None, :]
    pb = b + s[:, None] * SIDE + i[None, :]
    if FORM == "transposed" or FORM == "turned":
        pb = b + s[:, None] + i[None, :] * K
    counts: tl.constexpr = 1 if FORM == "counted" else DEEP
    step: tl.constexpr = 3 if FORM == "odd step" else counts
    for k in range(FIRST, FIRST + K // DEEP * step, step):
        x = tl.load(pa)
        if FORM == "turned":
            y = tl.load(b + i[:, None] * K + (k - FIRST) + s[None, :]).T
        elif FORM == "masked rows":
            y = tl.load(pb, mask=i[None, :] < 20, other=0.0)
        elif FORM == "ones":
            y = tl.load(pb, mask=i[None, :] < 20, other=1.0)
        else:
            y = tl.load(pb)
        acc = tl.dot(x, x.T if FORM == "same" else y, acc)
        pa += DEEP
        pb += DEEP if FORM == "transposed" else DEEP * SIDE
        last += 1
    if FORM == "used":
        acc += last
    tl.store(c + i[:, None] * SIDE + i[None, :], acc)


def depths(form: str, reads: Reads) -> list[int]:
    """The depth of every product, where one reads so much of operands that masks cut."""
    said = {"SIDE": 32, "DEEP": 32, "FORM": form, "FIRST": 0}
    module = tiles(unmasked, a=BF16, b=BF16, c=np.zeros(1 << 10, np.float32), K=1000, **said)
    FoldAdditions(adds_last=True).apply(module)
    widen_k_loops(module, reads_of=lambda product: reads)
    module.verify()
    return [shape_of(op.operands[0].type)[1] for op in named(module, "tt.dot")]


@pytest.mark.parametrize("form", FORMS)
def test_a_product_that_reads_what_is_left_has_one_loop(form: str) -> None:
    assert depths(form, Reads.PARTS) == [128]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reads", [Reads.ROWS, Reads.ALL])
def test_other_products_have_a_second_loop_for_the_rest(form: str, reads: Reads) -> None:
    assert depths(form, reads) == [128, 32]


@pytest.mark.parametrize("form", KEPT)
def test_loops_that_do_more_keep_their_second_loop(form: str) -> None:
    assert depths(form, Reads.PARTS)[-1] == 32


@pytest.mark.parametrize("steps", [0, 1, 3, 4, 5, 15, 16, 17, 33])
@pytest.mark.parametrize("form", [*FORMS, *KEPT])
def test_every_depth_gives_the_product_and_reads_nothing_beyond(
    form: str, steps: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_modelled_amx(monkeypatch)
    a, b = (rng.integers(-2, 3, shape) for shape in ((32, 32 * steps), (32 * steps, 32)))
    laid = b.T if form in ("transposed", "turned") else b
    x, y = (each.astype(ml_dtypes.bfloat16) for each in (a, laid))
    x, y = (before_a_hole(each) if steps else each for each in (x, y))
    c = before_a_hole(np.full((32, 32), np.nan, np.float32))
    unmasked[(1,)](x, y, c, K=32 * steps, SIDE=32, DEEP=32, FORM=form, FIRST=steps % 3 * 7)
    columns = np.arange(32) < 20
    right = {"masked rows": np.where(columns, b, 0), "ones": np.where(columns, b, 1), "same": a.T}
    want = a @ right.get(form, b) + (steps if form == "used" else 0)
    np.testing.assert_array_equal(c, want.astype(np.float32))
