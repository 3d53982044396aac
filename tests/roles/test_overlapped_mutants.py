"""Attention whose products overlap as the compiler has them, broken in every way: it is noticed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.partitioned import RINGS, Partitioned, attention_case
from tests.equivalence.test_overlapped_products import overlapped
from tests.equivalence.test_rings import lowered
from tests.roles.attention import Attention
from tests.roles.catching import Subject, catch, require_all_caught
from tilewright.schedule.protocol.scalars import Launch

SLOTS, ROWS, KEYS = 2, 128, 32
FORMS = ["second", "first"]
FEWEST = 230
"""So many mutants there are of each: two loops, each with what stands before and behind it."""
_LENGTH = 200


def subject_of(order: str) -> tuple[Subject, ModuleOp]:
    """The program of an order, with launches around its number of slots."""
    case = Partitioned(attention_case(_LENGTH, True, ROWS, KEYS), RINGS)
    module = lowered(case, overlapped(case, order, 2, SLOTS), "T2")
    # The first loop has four steps more with each program, the other one up to four.
    lengths = (0, 5, KEYS, KEYS + 5, 2 * KEYS, 3 * KEYS, ROWS, ROWS + 3 * KEYS, 3 * ROWS)
    launches = tuple(
        Launch({5: length, 6: length}, program=(program, 0, 0), programs=(3, 1, 1))
        for length in lengths
        for program in range(max(1, -(-length // ROWS)))
    )
    values = SimpleNamespace(**case.case.values())
    q, k, v = (np.ascontiguousarray(array[:1]) for array in (values.q, values.k, values.v))
    expected = case.case.expected()["out"][:1]

    def arguments() -> list[object]:
        out, sums = (np.full_like(array[:1], np.nan) for array in (values.out, values.sums))
        return [q, k, v, out, sums, _LENGTH, _LENGTH]

    return Subject(Attention(), launches, arguments, expected, 3, 2e-2), module


@pytest.mark.parametrize("order", FORMS)
def test_nothing_is_wrong_with_what_overlaps(order: str) -> None:
    subject, module = subject_of(order)
    assert catch(subject, module) is None


@pytest.mark.parametrize("order", FORMS)
def test_every_mutant_of_what_overlaps_is_caught(order: str) -> None:
    subject, module = subject_of(order)
    require_all_caught(subject, module, FEWEST)
