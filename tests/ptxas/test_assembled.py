"""What a launch compiles is assembled, as it is on a GPU: schedules, products and the corpus.

A kernel that ptxas refuses would be found on a card alone otherwise: the simulator runs the text
that ptxas is given, and `assemble_for_occupancy` gives it a second one.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.corpus.case import Case
from tests.corpus.everything import CASES, over
from tests.corpus.scheduled import Form, forms
from tests.corpus.threads import lower_for_gpu
from tests.unit.targets.nvidia.test_products import NARROW, product
from tilewright.machine.gpus import SM_90A
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.fit import assemble_for_occupancy
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas

# Those that are slow to run have bodies of thousands of ops, with which ptxas takes minutes.
QUICK = [case for case in CASES if not case.is_slow]


def is_assembled(case: Case, **options: object) -> bool:
    """Assemble a case as a launch does; whether ptxas made a kernel of its name."""
    threads = lower_for_gpu(case, **options)
    made = assemble_for_occupancy(to_ptx(threads.text, SM_90A), SM_90A, CompileOptions())
    return f".entry {threads.request.name}" in made.ptx and made.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("form", forms(), ids=str)
def test_schedules_are_assembled(form: Form) -> None:
    assert is_assembled(form.case, **form.options)


@pytest.mark.parametrize("shape", [*NARROW, (64, 64, 64), (128, 256, 32)])
@pytest.mark.parametrize("orders", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_products_are_assembled(
    dtype: type[np.generic], orders: str, shape: tuple[int, int, int]
) -> None:
    for warps in (4, 8):
        assert is_assembled(product(dtype, shape, orders, options={"num_warps": warps}))


@over(QUICK)
def test_kernels_of_the_corpus_are_assembled(case: Case) -> None:
    assert is_assembled(case)
