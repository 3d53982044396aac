"""What ptxas makes of programs that the compiler splits into roles."""

from __future__ import annotations

import numpy as np
import pytest

from tests.corpus.case import Case
from tests.corpus.partitioned import ATTENTIONS, gemm, gemm_case, persistent
from tests.corpus.threads import lower_for_gpu
from tests.unit.grouped_programs import Group, by_descriptors
from tilewright.compiler.build import make_request
from tilewright.compiler.stages import stage_text
from tilewright.frontend.devices import DevicePlacement
from tilewright.machine.gpus import SM_90A
from tilewright.targets.nvidia.assembler import assemble_ptx
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas

CASES = {
    "gemm": gemm_case(gemm, 256, 256, 256, "gemm-256", N=256),
    "persistent gemm": gemm_case(persistent, 256, 256, 256, "persistent-256", N=256, GROUP=8),
    "tiles in turn": gemm_case(persistent, 256, 256, 256, "turns-256", N=128, GROUP=8),
    "clusters": gemm_case(persistent, 256, 256, 256, "clusters-256", N=256, GROUP=8),
    "attention": ATTENTIONS[1].case,
    "causal attention": ATTENTIONS[2].case,
}


def test_roles_that_make_their_maps_do_not_spill() -> None:
    """Their scalars take registers of both roles; see `decide-roles`."""
    rng = np.random.default_rng(0)
    arguments = Group(rng, ((64, 64, 64),)).arguments()
    for groups, columns in ((2, 128), (2, 256), (1, 256)):
        rows = 64 * groups
        tiles = {"P": 132, "M": rows, "N": columns, "K": 64, "num_consumer_groups": groups}
        call = by_descriptors.specialize_call(arguments, tiles)
        machine, where = named_machine("sm_90a"), DevicePlacement("nvidia")
        request = make_request(call.source, call.specialization, call.options, where, machine)
        text = stage_text(request, "llir")
        made = assemble_ptx(to_ptx(text, SM_90A), "sm_90a")
        assert not made.resources.has_spills
        assert [str(message) for message in made.messages] == []
        assert made.ptx.count("setmaxnreg") == 2


WATCHED = {"deadlock_seconds": 10, "jitter": 5}


@pytest.mark.parametrize("options", [{}, WATCHED], ids=["plain", "watched"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_spills_and_nothing_is_serialized(name: str, options: dict[str, int]) -> None:
    """setmaxnreg is heard (no C7508), and products run on (no C7510 to C7518)."""
    case: Case = CASES[name]
    launch = {"cluster_dims": (2, 1, 1)} if name == "clusters" else {}
    text = lower_for_gpu(case, None, num_consumer_groups=2, **options, **launch).text
    made = assemble_ptx(to_ptx(text, SM_90A), "sm_90a")
    assert not made.resources.has_spills
    assert [str(message) for message in made.messages] == []
    assert made.resources.registers == 168
    assert made.ptx.count("setmaxnreg") == 2
    assert ("multicast::cluster" in made.ptx) == (name == "clusters")
    assert "wgmma.mma_async" in made.ptx and "cp.async.bulk.tensor" in made.ptx


@pytest.mark.parametrize("tiles", [(64, 256), (64, 128), (128, 128)])
def test_one_group_starts_with_what_its_products_need(tiles: tuple[int, int]) -> None:
    """One instruction of 64x256 takes 154 registers, and ptxas counts those at the start."""
    rows, columns = tiles
    case = gemm_case(gemm, 256, 256, 256, f"one-{rows}-{columns}", M=rows, N=columns)
    made = assemble_ptx(
        to_ptx(lower_for_gpu(case, None, num_consumer_groups=1).text, SM_90A), "sm_90a"
    )
    assert not made.resources.has_spills
    assert [str(message) for message in made.messages] == []
    assert made.ptx.count("setmaxnreg") == 2


def test_three_groups_take_256_columns_in_halves() -> None:
    """One instruction of 256 columns has more sums than a thread of four groups begins with."""
    case = gemm_case(persistent, 384, 256, 128, "three-256", M=192, N=256, GROUP=8)
    made = assemble_ptx(
        to_ptx(lower_for_gpu(case, None, num_consumer_groups=3).text, SM_90A), "sm_90a"
    )
    assert not made.resources.has_spills
    assert [str(message) for message in made.messages] == []
    assert made.resources.registers == 128
    assert "m64n128k16" in made.ptx and "m64n256k16" not in made.ptx
