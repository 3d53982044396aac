"""Forms of products: compiled code stores what the interpreter does, whatever the unit is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.asm.amx_host import use_modelled_amx
from tests.fuzz import chained_products, neighbouring_products, part_operands
from tests.fuzz.agreement import LAUNCHES, count_agreeing

FORMS = {
    "chained": (chained_products.programs, ("c", "sums")),
    "neighbouring": (neighbouring_products.programs, ("b", "c")),
    "parts": (part_operands.programs, ("c", "sums")),
}
"""What makes a module of random kernels, and the arrays that these store to."""


def check(form: str, seeds: range, folder: Path) -> None:
    """Hold random launches of random programs to the interpreter, bit for bit; all must run."""
    programs, written = FORMS[form]
    text, made = programs(seeds)
    checked = count_agreeing(folder / f"{form}_{seeds.start}.py", text, made, written)
    assert checked == len(seeds) * LAUNCHES


@pytest.mark.parametrize("first", range(0, 20, 4))
@pytest.mark.parametrize("form", FORMS)
def test_random_products_agree(form: str, first: int, tmp_path: Path) -> None:
    check(form, range(first, first + 4), tmp_path)


@pytest.mark.parametrize("first", range(32, 48, 4))
@pytest.mark.parametrize("form", FORMS)
def test_random_products_agree_on_amx(
    form: str, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_modelled_amx(monkeypatch)
    check(form, range(first, first + 4), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
@pytest.mark.parametrize("form", FORMS)
def test_many_random_products_agree(form: str, first: int, tmp_path: Path) -> None:
    check(form, range(first, first + 50), tmp_path)
