"""Control flow that no pass has heard of goes through the schedules of the CPU and the GPU."""

from __future__ import annotations

from tests.corpus.case import Case, check
from tests.corpus.everything import FAMILIES, over
from tests.corpus.run import prepare, run_module
from tests.corpus.threads import gpu_request
from tests.equivalence.other_control_flow import ChooseOp, RepeatOp, use_others
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.interp.code import Rules
from tilewright.targets.cpu.interpret import CPU_INTERPRETATION
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.target import load_target

# Those of control and blocks with branches, or loops over constants.
_NAMED = (
    "collatz",
    "branch-merges-tiles",
    "branch-on-data",
    "early-return",
    "first-above",
    "skip-some",
    "nested-functions",
    "ternaries",
    "loop-in-branch",
    "flip-in-nested-loops",
    "descriptor-paths",
)
USING = [case for name in ("control", "blocks") for case in FAMILIES[name] if case.name in _NAMED]


def require_same(case: Case, target: str) -> None:
    """Bring a case with other control flow to a target's level, and check what it computes."""
    request = prepare(case).request if target == "cpu" else gpu_request(case)
    rules: Rules = CPU_INTERPRETATION if target == "cpu" else NVIDIA_INTERPRETATION
    module = to_tiles(request, load_target(target), None)
    assert use_others(module) > 0
    module.verify()
    check(case, run_module(case, module, rules), case.expected(), "at T0")
    result = to_schedule(request, load_target(target), module).module
    result.verify()
    check(case, run_module(case, result, rules), case.expected(), f"scheduled for {target}")
    assert any(isinstance(op, RepeatOp | ChooseOp) for op in result.walk()), "the ops are gone"


def test_there_are_cases() -> None:
    assert sorted(case.name for case in USING) == sorted(_NAMED)


@over(USING)
def test_the_cpu_takes_control_flow_by_its_edges(case: Case) -> None:
    require_same(case, "cpu")


@over(USING)
def test_a_gpu_takes_control_flow_by_its_edges(case: Case) -> None:
    require_same(case, "nvidia")
