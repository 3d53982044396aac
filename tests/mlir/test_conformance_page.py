"""The page of kernels that were compared is whole, and holds no kernel that was not equal."""

from __future__ import annotations

from tests.corpus.everything import FAMILIES
from tests.mlir.conformance import EQUAL, PATH
from tests.mlir.test_families import KERNELS


def rows() -> list[list[str]]:
    lines = PATH.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in cells if len(row) == 5 and row[0] not in ("family", "---")]


def test_the_page_lists_every_kernel_once() -> None:
    listed = [f"{row[0]}[{variant}]" for row in rows() for variant in row[2].split(", ")]
    assert listed == [kernel.name for kernel in KERNELS], "run python -m tests.mlir.conformance"


def test_every_kernel_that_was_run_is_equal() -> None:
    assert {row[4] for row in rows()} == {EQUAL}


def test_the_page_counts_the_corpus() -> None:
    text = PATH.read_text(encoding="utf-8")
    for name, cases in FAMILIES.items():
        assert f"| {name} | {len(cases)} |" in text, "run python -m tests.mlir.conformance"
