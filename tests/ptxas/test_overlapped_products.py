"""What ptxas makes of attention whose products the compiler orders: nothing spills or waits."""

from __future__ import annotations

import pytest

from tests.corpus.partitioned import attention_case
from tests.corpus.threads import lower_for_gpu
from tests.ptxas.test_roles import count, shortest_loop
from tilewright.machine.gpus import SM_90A
from tilewright.targets.nvidia.assembler import Assembled, assemble_ptx, disassemble_cubin
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas

FORMS = {
    "two groups": (128, {"num_consumer_groups": 2}),
    "two groups, first ahead": (
        128,
        {"num_consumer_groups": 2, "loop_schedule": "FA_firstDot"},
    ),
    "three groups": (192, {"num_consumer_groups": 3}),
    "three groups by turns": (192, {"num_consumer_groups": 3, "loop_schedule": "straight"}),
}


def assembled(name: str) -> Assembled:
    """What ptxas makes of attention over 128 keys at a time, in a form."""
    rows, options = FORMS[name]
    case = attention_case(1024, False, rows, 128, **options)
    return assemble_ptx(to_ptx(lower_for_gpu(case).text, SM_90A), "sm_90a")


@pytest.mark.parametrize("name", FORMS)
def test_nothing_spills_and_products_run_on(name: str) -> None:
    made = assembled(name)
    assert not made.resources.has_spills
    assert [str(message) for message in made.messages] == []
    sass = disassemble_cubin(made.cubin)
    assert sass is not None, "`make ptxas-test` installs a disassembler"
    loop = shortest_loop(sass, "MUFU.EX2")
    assert count(loop, "HGMMA") == 12
    assert count(loop, "MUFU.EX2") == 66
    for what in ("WARPSYNC", "VOTE", "STL", "LDL"):
        assert count(loop, what) == 0
    if "turns" in name:
        (passed,) = [at for at, line in enumerate(loop) if "BAR.ARV" in line]
        assert count(loop[:passed], "MUFU.EX2") == 0
        return
    # The first wait leaves the second product running.
    waits = [line for line in loop if "WARPGROUP.DEPBAR" in line]
    assert "0x1" in waits[0] and "0x0" in waits[-1]
