"""What ops do to memory while they run is what they declare, at every level."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tests.corpus.case import Case
from tests.corpus.everything import FAMILIES, every_case, over
from tests.corpus.run import prepare, run_module, tile_module
from tests.equivalence.test_gpu_levels import stages
from tilewright.compiler.compile import to_schedule
from tilewright.interp.code import Rules
from tilewright.interp.program import Touched
from tilewright.interp.rules import TILE_RULES
from tilewright.ir.effects import Access, Extent, Resource, own_effects
from tilewright.targets.cpu.interpret import CPU_INTERPRETATION
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.target import load_target

_FAMILIES = ("memory", "atomics", "blocks", "matmul", "control", "indexing", "reductions")
_WATCHED = (Resource.GLOBAL, Resource.SHARED)
# They write where what they compare with is there, fetch ahead what they then do not read, or
# need no zero of what they overwrite; or the interpreter keeps as a value what lies in memory: a
# map, and what says which slots of a ring are full.
_MAY_DO_LESS = frozenset({"tt.atomic_cas", "cpu.dot", "ttng.make_tensor_map", "ttg.ring"})


class Executed:
    """The ops without regions that a program has evaluated."""

    def __init__(self) -> None:
        self.ops: set[Operation] = set()

    def after_op(self, operation: Operation, program: object, results: object) -> None:
        self.ops.add(operation)


def require_true_declarations(case: Case, module: ModuleOp, rules: Rules) -> None:
    """That an op touches nothing else is checked by the interpreter itself."""
    touched: set[Touched] = set()
    executed = Executed()
    run_module(case, module, rules, touched=touched, observers=(executed,))
    ops = executed.ops | {op for op, _, _ in touched}
    for op in ops:
        if op.name in _MAY_DO_LESS:
            continue
        for access in own_effects(op):
            if not isinstance(access, Access) or access.resource not in _WATCHED:
                continue
            assert access.extent is not Extent.END
            for does, writes in ((access.reads, False), (access.writes, True)):
                assert not does or (op, access.resource, writes) in touched, f"{op} does not"


def of_families(step: int) -> list[Case]:
    cases = [case for name in _FAMILIES for case in FAMILIES[name] if not case.is_slow]
    return [case for case in cases if not case.name.startswith("sort-")][::step]


def on_every_level(case: Case) -> None:
    request = prepare(case).request
    module = tile_module(request)
    require_true_declarations(case, module, TILE_RULES)
    scheduled = to_schedule(request, load_target("cpu"), module, None)
    require_true_declarations(case, scheduled.module, CPU_INTERPRETATION)
    for _, module in stages(case):
        require_true_declarations(case, module, NVIDIA_INTERPRETATION)


@over(of_families(9))
def test_ops_do_what_they_declare_and_nothing_else(case: Case) -> None:
    on_every_level(case)


@pytest.mark.slow
@every_case()
def test_ops_do_what_they_declare_and_nothing_else_anywhere(case: Case) -> None:
    on_every_level(case)
