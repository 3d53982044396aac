"""No pass and no schedule changes what a kernel computes: before == after in the interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.case import EXACT, Case, check
from tests.corpus.everything import CASES, FAMILIES, every_case, over
from tests.corpus.run import prepare, run_module, tile_module
from tilewright.compiler.compile import to_schedule
from tilewright.targets.cpu.interpret import CPU_INTERPRETATION
from tilewright.targets.target import load_target

# Families whose kernels the T0 passes rewrite most: structure, loops, pointers, blocks.
_REWRITTEN = ("memory", "control", "blocks", "matmul", "shapes")
# The interpreter runs C2 vector by vector: cases of many elements take seconds there.
_SCHEDULED = ("shapes", "control", "blocks", "indexing", "atomics", "reductions")


def stages(case: Case) -> Iterator[tuple[str, ModuleOp]]:
    """The module after lowering and after each T0 pass of the CPU's pipeline."""
    found: list[tuple[str, ModuleOp]] = []
    tile_module(prepare(case).request, lambda name, module: found.append((name, module.clone())))
    yield from found


def of_families(names: tuple[str, ...], step: int = 1) -> list[Case]:
    cases = [case for name in names for case in FAMILIES[name] if not case.is_slow]
    return [case for case in cases if not case.name.startswith("sort-")][::step]


def require_same_after_each_pass(case: Case) -> None:
    before = None
    for name, module in stages(case):
        module.verify()
        after = run_module(case, module)
        if before is None:
            check(case, after, case.expected(), f"after {name} against NumPy")
        else:
            exactly = Case(case.name, case.kernel, case.grid, case.inputs, case.reference, EXACT)
            check(exactly, after, before, f"after {name} against the stage before")
        before = after


@over(of_families(_REWRITTEN, 2))
def test_no_tile_pass_changes_a_single_bit(case: Case) -> None:
    require_same_after_each_pass(case)


@pytest.mark.slow
@every_case()
def test_no_tile_pass_changes_a_single_bit_anywhere(case: Case) -> None:
    require_same_after_each_pass(case)


def require_same_when_scheduled(case: Case) -> None:
    request = prepare(case).request
    scheduled = to_schedule(request, load_target("cpu"), tile_module(request))
    scheduled.module.verify()
    got = run_module(case, scheduled.module, CPU_INTERPRETATION)
    check(case, got, case.expected(), "scheduled nests against NumPy")


@over(of_families(_SCHEDULED, 4))
def test_the_schedule_computes_what_the_tiles_compute(case: Case) -> None:
    require_same_when_scheduled(case)


@pytest.mark.slow
@over([case for case in CASES if not case.name.startswith("large-")])
def test_the_schedule_computes_what_the_tiles_compute_everywhere(case: Case) -> None:
    require_same_when_scheduled(case)
