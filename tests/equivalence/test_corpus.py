"""Every kernel of the corpus: the interpreter, the compiled kernel and NumPy agree.

Contraction is off, so results that are rounded once are compared bit for bit; the others by
the tolerance that the case states. Memory around every array is guarded.
"""

from __future__ import annotations

import pytest

from tests.corpus.case import Case, check
from tests.corpus.everything import CASES, every_case, over, sample
from tests.corpus.run import run_compiled, run_interpreted

# Descriptors need aligned memory.
ALIGNED = ("host-descriptors", "descriptor-copy", "descriptor-of-three", "descriptor-adds")
# What these show is that nothing is contracted, bit for bit.
UNCONTRACTED = ("chain", "horner", "low-precision-chain-float16", "low-precision-chain-bfloat16")


def test_the_corpus_is_broad() -> None:
    kernels = {case.kernel for case in CASES}
    assert len(kernels) >= 80
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(1 for case in CASES if not case.is_slow) >= 250


@every_case()
def test_the_interpreter_agrees_with_numpy(case: Case) -> None:
    check(case, run_interpreted(case), case.expected(), "interpreter against NumPy")


@every_case()
def test_the_compiled_kernel_agrees_with_numpy(case: Case) -> None:
    check(case, run_compiled(case), case.expected(), "compiled against NumPy")


@over([case for case in sample(4)[::2] if case.name not in ALIGNED])
def test_the_compiled_kernel_agrees_where_arrays_are_not_aligned(case: Case) -> None:
    got = run_compiled(case, shift=1)
    check(case, got, case.expected(), "compiled, misaligned, against NumPy")


@pytest.mark.slow
@over([case for case in CASES if case.name not in UNCONTRACTED])
def test_contraction_stays_within_the_tolerance_of_rounded_results(case: Case) -> None:
    got = run_compiled(case, enable_fp_fusion=True)
    check(case, got, case.expected(), "compiled with contraction against NumPy")
