"""Roles that the compiler formed, each broken in every way: somebody notices, without a GPU.

The programs are those whose rings and stores the compiler writes in a way of its own: tiles in
turn with skipped fills and late releases, and chunks that go out while a role goes on.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.partitioned import AB, Partitioned, gemm_case, persistent
from tests.equivalence.test_rings import lowered
from tests.roles.catching import Subject, catch, require_all_caught
from tests.roles.gemm import Gemm
from tilewright.schedule.protocol.scalars import Launch

M, N, K, SLOTS = 64, 64, 64, 3
CHUNKS = "; epilogue tma columns 32 buffers 2"
FORMS = {
    "tiles in turn": ("tiles", M, "late"),
    "rows shared": ("m", 2 * M, "wait"),
}
FEWEST = {"tiles in turn": 94, "rows shared": 70}


def subject_of(form: str) -> tuple[Subject, ModuleOp]:
    """The program of a form, with launches around its number of slots."""
    split, rows, release = FORMS[form]
    m, n, k = 3 * rows, N, K * (SLOTS + 1)
    case = gemm_case(persistent, m, n, k, form, M=rows, N=N, K=K, GROUP=2)
    ring = f"{AB} tma release {release}"
    program = Partitioned(case, ring)
    module = lowered(program, program.text(2, split, SLOTS) + CHUNKS, "T2")
    launches = tuple(
        Launch({3: rows * tiles, 4: n, 5: K * steps})
        for tiles in (1, 2, 3)
        for steps in (0, 1, SLOTS - 1, SLOTS, SLOTS + 1, 2 * SLOTS + 1)
    )
    values = SimpleNamespace(**case.inputs(np.random.default_rng(3)))
    expected = values.a.astype(np.float32) @ values.b.astype(np.float32)

    def arguments() -> list[object]:
        return [values.a, values.b, np.full((m, n), np.nan, np.float16), m, n, k]

    return Subject(Gemm(), launches, arguments, expected, 2, 0.0), module


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_wrong_with_what_is_formed(form: str) -> None:
    subject, module = subject_of(form)
    assert catch(subject, module) is None


@pytest.mark.parametrize("form", FORMS)
def test_every_mutant_of_what_is_formed_is_caught(form: str) -> None:
    subject, module = subject_of(form)
    require_all_caught(subject, module, FEWEST[form])
