"""One cta more where a few registers less let it in."""

from __future__ import annotations

import pytest

from tests.ptxas.kernels import F32, benchmark_kernels, ptx_of, request_of
from tilewright.targets.nvidia.assembler import assemble_ptx
from tilewright.targets.nvidia.fit import assemble_for_occupancy
from tilewright.targets.nvidia.host import named_machine

pytestmark = pytest.mark.ptxas

REGISTER_FILE = 65536
MACHINE = named_machine("sm_90a")


def ctas(registers: int, threads: int) -> int:
    """The ctas whose registers an SM holds."""
    return REGISTER_FILE // (-(-registers // 8) * 8 * threads)


def wide_softmax() -> str:
    """The PTX of a softmax whose rows fill the registers of 16 warps."""
    arguments = (F32, F32, 16384, 16384)
    options = {"BLOCK": 16384, "num_warps": 16}
    return ptx_of(request_of(benchmark_kernels().softmax, arguments, options))


def test_a_kernel_just_above_a_boundary_comes_below_it() -> None:
    ptx = wide_softmax()
    plain = assemble_ptx(ptx, "sm_90a").resources
    fitted = assemble_for_occupancy(ptx, MACHINE, {}).resources
    assert ctas(plain.registers, 512) == 1 and ctas(fitted.registers, 512) == 2
    assert fitted.spill_store_bytes + fitted.spill_load_bytes <= 16


def test_a_register_limit_of_the_author_is_left_alone() -> None:
    ptx = wide_softmax()
    assert assemble_for_occupancy(ptx, MACHINE, {"maxnreg": 128}).ptx == ptx
