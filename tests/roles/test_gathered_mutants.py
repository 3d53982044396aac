"""Replicas that show each other parts of tiles, broken in every way: somebody notices."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.gathered import CHAINS
from tests.equivalence.test_rings import lowered
from tests.roles.catching import Subject, catch, require_all_caught
from tests.roles.gemm import Gemm
from tilewright.schedule.protocol.run import Launch

FEWEST = 60


def subject() -> tuple[Subject, ModuleOp]:
    """A chain of products, with launches around the slots of its rings."""
    case = CHAINS[0]
    module = lowered(case, case.text(2), "T2")
    launches = tuple(Launch({4: 64 * steps}) for steps in (0, 1, 2, 3, 5))
    values = SimpleNamespace(**case.case.inputs(np.random.default_rng(3)))
    expected = values.out.copy()
    case.case.reference(SimpleNamespace(**{**vars(values), "out": expected}))

    def arguments() -> list[object]:
        return [values.a, values.b, values.c, np.full_like(expected, np.nan), values.n]

    return Subject(Gemm(), launches, arguments, expected, 3, 0.0), module


def test_nothing_is_wrong_with_what_is_gathered() -> None:
    assert catch(*subject()) is None


def test_every_mutant_of_what_is_gathered_is_caught() -> None:
    require_all_caught(*subject(), FEWEST)
