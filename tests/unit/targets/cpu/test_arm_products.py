"""Kernels for AArch64 machines, compiled on any: which unit multiplies, and what is said of it."""

from __future__ import annotations

import pytest

from tests.aarch64.emulator import compile_case, emitted_assembly
from tests.aarch64.machines import NEOVERSE_N1, NEOVERSE_V2, Emulated
from tests.corpus.everything import CASES
from tilewright.tools.explain import explain

PRODUCTS = {"smmla", "bfmmla", "sdot", "bfdot", "fmla"}
# Tiles of 16 rows.
CASE_NAMES = ("matmul-int8-nn-50x37x70x16x32x32", "matmul-bfloat16-nt-50x37x70x16x32x32")


@pytest.mark.parametrize(
    ("machine", "name", "unit", "word"),
    [
        (NEOVERSE_V2, CASE_NAMES[0], "2x2 byte products in eights", "smmla"),
        (NEOVERSE_V2, CASE_NAMES[1], "2x2 bf16 products in fours", "bfmmla"),
        (NEOVERSE_N1, CASE_NAMES[0], "byte products in fours", "sdot"),
        (NEOVERSE_N1, CASE_NAMES[1], "fused multiply-adds", "fmla"),
    ],
    ids=["v2-int8", "v2-bf16", "n1-int8", "n1-bf16"],
)
def test_the_unit_is_what_explain_says(
    machine: Emulated, name: str, unit: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = (case for case in CASES if case.name == name)
    prepared, artifact = compile_case(case, machine)
    explain(prepared.request)
    said = capsys.readouterr().out
    assert f": {unit} · " in said and "AMX" not in said
    assert set(emitted_assembly(prepared).split()) & PRODUCTS == {word}
    assert not artifact.metadata["uses_amx"]
