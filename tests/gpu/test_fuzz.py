"""Random programs on the GPU: they leave the memory that the interpreter leaves.

A failure prints the seed and the smallest program that fails the same way.
"""

from __future__ import annotations

import pytest

from tests.fuzz.generator import generate
from tests.fuzz.oracle import GPU, Finding, Run, examine
from tests.fuzz.program import Program
from tests.fuzz.reduction import reduce
from tests.gpu.fuzz_way import run_on_gpu

pytestmark = pytest.mark.gpu

CHUNK = 20
_REDUCTIONS = 60


WAYS: dict[str, Run] = {GPU: run_on_gpu}


def shrunk(program: Program, finding: Finding) -> Program:
    """The smallest program found with the same finding."""

    def fails(candidate: Program) -> bool:
        found = examine(candidate, (), WAYS)
        return found is not None and found.kind == finding.kind

    return reduce(program, fails, _REDUCTIONS)


@pytest.mark.parametrize("first", range(300_000, 300_200, CHUNK))
def test_random_programs_agree(first: int) -> None:
    for seed in range(first, first + CHUNK):
        program = generate(seed)
        finding = examine(program, (), WAYS)
        if finding is not None:
            text = shrunk(program, finding).source()
            pytest.fail(f"seed {seed}: {finding.kind}\n{finding.text}\n{text}")
