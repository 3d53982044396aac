"""The corpus: all cases, by family."""

from __future__ import annotations

import pytest

from tests.corpus import (
    atomics,
    blocks,
    control,
    conversions,
    elementwise,
    exchanges,
    grouped,
    hostile,
    indexing,
    matmul,
    memory,
    nans,
    narrow_floats,
    narrow_scans,
    reductions,
    scaled,
    shapes,
)
from tests.corpus.case import Case

FAMILIES: dict[str, list[Case]] = {
    "elementwise": elementwise.CASES,
    "conversions": conversions.CASES,
    "shapes": shapes.CASES,
    "reductions": reductions.CASES,
    "exchanges": exchanges.CASES,
    "matmul": matmul.CASES,
    "memory": memory.CASES,
    "control": control.CASES,
    "indexing": indexing.CASES,
    "atomics": atomics.CASES,
    "blocks": blocks.CASES,
    "narrow_floats": narrow_floats.CASES,
    "narrow_scans": narrow_scans.CASES,
    "nans": nans.CASES,
    "scaled": scaled.CASES,
    "hostile": hostile.CASES,
    "grouped": grouped.CASES,
}
CASES = [case for family in FAMILIES.values() for case in family]


def every_case() -> pytest.MarkDecorator:
    """Run a test for each case; what is slow is marked so."""
    return over(CASES)


def over(cases: list[Case]) -> pytest.MarkDecorator:
    """Run a test for each of some cases."""
    slow = pytest.mark.slow
    parameters = [
        pytest.param(case, id=case.name, marks=slow if case.is_slow else ()) for case in cases
    ]
    return pytest.mark.parametrize("case", parameters)


def sample(step: int) -> list[Case]:
    """Every `step`-th case of the elementwise families, and all others that are not slow."""
    many = [*FAMILIES["elementwise"], *FAMILIES["conversions"]]
    thinned = [case for case in many if not case.is_slow][::step]
    rest = [case for name, family in FAMILIES.items() for case in family
            if name not in ("elementwise", "conversions") and not case.is_slow]  # fmt: skip
    return [*thinned, *rest]
