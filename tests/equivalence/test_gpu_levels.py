"""No step of the GPU's schedule changes what a kernel computes: before == after, at T1 and T2."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.case import EXACT, Case, check
from tests.corpus.everything import CASES, FAMILIES, over
from tests.corpus.run import run_module
from tests.corpus.threads import gpu_request
from tilewright.compiler.compile import StageResult, to_schedule, to_tiles
from tilewright.compiler.instruments import verifier_of
from tilewright.ir.text import print_module
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.target import load_target

_MOVING = ("reductions", "shapes", "matmul", "indexing", "control", "blocks", "memory")

# Between the places of shared tiles and the barriers, warps are not ordered.
_UNORDERED = (
    *("place-shared", "place-barriers", "carry-phases", "count-rings", "release-late"),
    "meet-at-barriers",
)


def of_families(names: tuple[str, ...], step: int) -> list[Case]:
    return [case for name in names for case in FAMILIES[name] if not case.is_slow][::step]


def stages(case: Case, **options: object) -> Iterator[tuple[str, ModuleOp]]:
    """The module at T0, and after each pass that changes it and leaves a whole program.

    Each is checked against the contract of its level.
    """
    request, target = gpu_request(case, **options), load_target("nvidia")
    verify = verifier_of(request)
    module = to_tiles(request, target, verify)
    found = {print_module(module): ("T0", module.clone())}

    def show(name: str, shown: StageResult) -> None:
        verify(name, shown)
        assert isinstance(shown, ModuleOp)
        if name not in _UNORDERED:
            found.setdefault(print_module(shown), (name, shown.clone()))

    to_schedule(request, target, module, show)
    yield from found.values()


def require_same_after_each_step(case: Case, **options: object) -> None:
    exactly = Case(
        case.name, case.kernel, case.grid, case.inputs, case.reference, EXACT, options=case.options
    )
    before = None
    for name, module in stages(case, **options):
        after = run_module(case, module, NVIDIA_INTERPRETATION)
        if before is not None:
            check(exactly, after, before, f"after {name} against the step before")
        before = after


@over(of_families(_MOVING, 3))
def test_no_step_of_the_schedule_changes_a_single_bit(case: Case) -> None:
    require_same_after_each_step(case)


@pytest.mark.parametrize("num_warps", [1, 8])
@over(FAMILIES["matmul"][::4])
def test_products_stay_the_same_with_any_number_of_warps(case: Case, num_warps: int) -> None:
    require_same_after_each_step(case, num_warps=num_warps)


@pytest.mark.slow
@over(CASES)
def test_no_step_of_the_schedule_changes_a_single_bit_anywhere(case: Case) -> None:
    require_same_after_each_step(case)
