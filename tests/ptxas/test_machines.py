"""Every GPU that there are rules for: its code assembles for it."""

from __future__ import annotations

import pytest

from tests.corpus.case import Case
from tests.corpus.everything import CASES
from tests.corpus.threads import gpu_request
from tilewright.compiler.stages import stage_text
from tilewright.support.dataclass import replace
from tilewright.targets.nvidia.assembler import assemble_ptx
from tilewright.targets.nvidia.host import NAMED_MACHINES, named_machine

# One case in so many: enough for products, reductions, atomics and descriptors.
_STRIDE = 80

pytestmark = pytest.mark.ptxas


@pytest.mark.parametrize("case", CASES[::_STRIDE], ids=lambda case: case.name)
@pytest.mark.parametrize("name", [n for n in NAMED_MACHINES if n.startswith("sm_1")])
def test_code_assembles_for_a_successor_of_hopper(name: str, case: Case) -> None:
    machine = named_machine(name)
    ptx = stage_text(replace(gpu_request(case), machine=machine), "ptx")
    assert "wgmma" not in ptx
    assert assemble_ptx(ptx, machine.arch).cubin
