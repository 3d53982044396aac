"""A walk over a function knows of every tile of the corpus what its ops alone tell, or more."""

from __future__ import annotations

import pytest

from tests.corpus.everything import FAMILIES
from tests.corpus.threads import gpu_request
from tilewright.analysis.affine.along import Along
from tilewright.analysis.affine.tile import AffineTile
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.analysis.facts import AxisFacts
from tilewright.analysis.strides import ADDRESS_BITS
from tilewright.compiler.stages import to_tiles
from tilewright.ir.types import shape_of
from tilewright.targets.target import load_target


def contradiction(along: Along, facts: AffineTile, dim: int) -> str:
    """What the ops tell of a tile along a dimension that the walk does not say."""
    known, extent = facts.dims[dim], facts.kind.shape[dim]
    if along.is_still() and not facts.is_constant_along(dim):
        return f"equal elements, in groups of {facts.constancy[dim]}"
    if along.stride is None or along.stride.jumps:
        return ""
    # Of narrow integers a stride holds modulo their width, and groups are what no width breaks.
    is_narrow = 0 < facts.kind.bits < ADDRESS_BITS
    if known.length != extent and not is_narrow:
        return f"a stride of {along.stride}, but {known}"
    if known.length > 1 and not known.step.minus(along.stride.value).is_zero():
        return f"a stride of {along.stride}, but {known}"
    return ""


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_walk_knows_each_stride_that_ops_tell(family: str) -> None:
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
