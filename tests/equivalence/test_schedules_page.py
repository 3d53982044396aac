"""The page of schedules lists the corpus as it is, counts itself right, and holds no other bits."""

from __future__ import annotations

import pytest

from tests.corpus.case import Case
from tests.equivalence.schedules import FORMS, PATH, cases, outcome, straight

CASES = {case.name: case for case in cases()}
AGAIN = "run python -m tests.equivalence.schedules"
FEW = ("sum-over-blocks", "matmul-float16-tn-50x37x70x16x32x32", "gemm-odd", "paged-17")


def rows() -> dict[str, list[str]]:
    """What the page says of each kernel."""
    lines = PATH.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    found = [row for row in cells if len(row) == 1 + len(FORMS) and row[0] not in ("kernel", "---")]
    return {row[0]: row[1:] for row in found}


def test_the_page_lists_every_kernel_with_a_loop_once() -> None:
    assert list(rows()) == list(CASES), AGAIN


def test_no_kernel_has_other_bits_under_a_schedule() -> None:
    assert not [name for name, cells in rows().items() if "differs" in "".join(cells)]


def test_the_page_counts_what_it_lists() -> None:
    text = PATH.read_text(encoding="utf-8").replace("\n", " ")
    cells = [cell for row in rows().values() for cell in row if cell != "-"]
    counts = {kind: sum(kind in cell for cell in cells) for kind in ("roles", "ahead", "straight")}
    assert f"{len(CASES)} kernels under {len(FORMS)} forms: {len(cells)} runs" in text, AGAIN
    assert f" {counts['roles']} are in roles, in {counts['ahead']} loads run ahead," in text, AGAIN
    assert f" {counts['straight']} are straight" in text, AGAIN


@pytest.mark.parametrize("case", [CASES[name] for name in FEW], ids=lambda case: case.name)
def test_a_kernel_runs_as_the_page_says(case: Case) -> None:
    expected = straight(case)
    assert [str(outcome(case, form, expected)) for form in FORMS] == rows()[case.name], AGAIN
