"""Programs that load for each other, broken in every way: somebody notices, without a GPU.

Ops are changed at T2, where the checks, the run of the protocol and the interpreter look for it.
What only the text of a thread says (whom a copy reaches, where an arrival goes, how many bytes are
announced) is changed there, and the simulator looks.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.partitioned import persistent
from tests.roles.catching import Caught
from tests.roles.mutants import mutants_of
from tests.roles.running import interpret
from tests.unit.targets.nvidia.persistent_kernels import TARGET, scheduled_for
from tests.unit.targets.nvidia.test_clusters import LAUNCHES, ROLES, operands, placed
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.schedule.protocol.check import check_protocol
from tilewright.schedule.protocol.run import run_protocol
from tilewright.support.errors import KernelFault, ProtocolBroken

FEWEST = 79
SIZES = 264, 136, 200
TILE = {"M": 128, "N": 128, "K": 64, "GROUP": 2}


def catch(module: ModuleOp) -> Caught | None:
    """Who notices that something is wrong with a module; None where nobody does."""
    kernel = find_kernel(module)
    try:
        check_protocol(kernel, SM_90A)
        for launch in LAUNCHES:
            run_protocol(kernel, launch)
    except ProtocolBroken as error:
        return Caught("protocol", str(error))
    a, b, c = operands(*SIZES)
    try:
        interpret(module, [a, b, c, *SIZES], 2)
    except KernelFault as error:
        return Caught("data", str(error))
    is_right = np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    return None if is_right else Caught("data", "wrong elements")


def test_nothing_is_wrong_with_what_is_shared() -> None:
    assert catch(placed().module) is None


def test_every_mutant_of_what_is_shared_is_caught() -> None:
    module, stages = placed().module, Counter[str]()
    unnoticed: list[str] = []
    for mutant in mutants_of(module):
        changed = module.clone()
        mutant.apply(changed)
        caught = catch(changed)
        if caught is None:
            unnoticed.append(mutant.name)
        else:
            stages[caught.stage] += 1
    assert not unnoticed
    assert stages.total() >= FEWEST and stages["protocol"] > 3 * stages["data"]


# --- what only the text says --------------------------------------------------------------------

ARRIVAL = (
    "mapa.shared::cluster.u32 there, $0, $2; @p mbarrier.arrive.shared::cluster.b64 _, [there]"
)
NOTHING = "fence.mbarrier_init.release.cluster()"
CHANGES = {
    "no arrival at the other program": (ARRIVAL, "mov.b32 there, $0"),
    "each arrival at the first program": ("there, $0, $2;", "there, $0, 0;"),
    "a copy that reaches its own program alone": ("i16 3, i64 0, i1 true", "i16 1, i64 0, i1 true"),
    "a copy that reaches the other program alone": (
        "i16 3, i64 0, i1 true",
        "i16 2, i64 0, i1 true",
    ),
    "half of the bytes announced": ("i32 32768)", "i32 16384)"),
    "16 bytes too many announced": ("i32 32768)", "i32 32784)"),
    "no start that programs meet at": ("barrier.cluster.wait.aligned()", NOTHING),
    "no end that programs meet at": ("barrier.cluster.wait()", NOTHING),
}


def simulated(before: str, after: str) -> None:
    """Run the product with a part of its text changed, and hold it to NumPy."""
    a, b, c = operands(*SIZES)
    options = {**TILE, "schedule": ROLES.format(slots=2, rest="")}
    scheduled, text, values = scheduled_for(persistent, (a, b, c, *SIZES), 132, options)
    assert TARGET.simulate is not None and before in text
    changed = text.replace(before, after)
    TARGET.simulate(scheduled, changed, "persistent", (2, 1, 1), values, None, None)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


def test_the_text_itself_is_right() -> None:
    simulated("i16 3", "i16 3")


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_text_is_noticed(name: str) -> None:
    with pytest.raises((KernelFault, AssertionError)):
        simulated(*CHANGES[name])
