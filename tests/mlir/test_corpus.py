"""Every kernel of the corpus, lowered by stock MLIR and run, agrees with NumPy."""

from __future__ import annotations

import pytest

from tests.corpus.case import Case, check
from tests.corpus.everything import every_case
from tests.corpus.run import run_compiled

pytestmark = pytest.mark.mlir


@pytest.fixture(autouse=True)
def on_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")


@every_case()
def test_the_kernel_that_mlir_lowers_agrees_with_numpy(case: Case) -> None:
    check(case, run_compiled(case), case.expected(), "lowered by MLIR against NumPy")
