"""Axis facts say of every tile of the corpus what the analysis of affine tiles says, or more."""

from __future__ import annotations

import pytest

from tests.corpus.everything import FAMILIES
from tests.corpus.threads import gpu_request
from tilewright.analysis.affine.tile import Along
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.analysis.axis import Facts
from tilewright.analysis.facts import AxisFacts
from tilewright.compiler.stages import to_tiles
from tilewright.ir.types import shape_of
from tilewright.targets.target import load_target


def contradiction(along: Along, facts: Facts, dim: int) -> str:
    """What is known of an affine tile along a dimension that its axis facts do not say."""
    if along.is_still() and not facts.is_constant_along(dim):
        return f"equal elements, in groups of {facts.constancy[dim]}"
    stride = None if along.stride is None or along.stride.jumps else along.stride.as_int()
    run = facts.runs[dim]
    if stride == 1 and facts.contiguity[dim] != facts.extents[dim]:
        return f"consecutive elements, in runs of {facts.contiguity[dim]}"
    if stride is not None and run.length > 1 and run.stride != stride:
        return f"a stride of {stride}, but {facts}"
    return ""


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_axis_facts_know_all_that_is_known_of_affine_tiles(family: str) -> None:
    known = 0
    for case in FAMILIES[family]:
        module = to_tiles(gpu_request(case), load_target("nvidia"))
        facts, tiles = AxisFacts(module), AffineTiles()
        for value in (result for op in module.walk() for result in op.results):
            for dim, along in enumerate(tiles.of(value).dims):
                if shape_of(value.type)[dim] > 1:
                    wrong = contradiction(along, facts.of(value), dim)
                    assert not wrong, (case.name, str(value.owner), dim, wrong)
                    known += along.stride is not None
    assert known or not FAMILIES[family]
