"""One cta more where a few registers less let it in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ptxas.kernels import F32, benchmark_kernels, ptx_of, request_of
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.assembler import assemble_ptx
from tilewright.targets.nvidia.errors import AssemblerFailed
from tilewright.targets.nvidia.fit import assemble_for_occupancy
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.toolchain import Assembler, find_assembler

pytestmark = pytest.mark.ptxas

REGISTER_FILE = 65536
MACHINE = named_machine("sm_90a")


def ctas(registers: int, threads: int) -> int:
    """The ctas whose registers an SM holds."""
    return REGISTER_FILE // (-(-registers // 8) * 8 * threads)


def wide_softmax() -> str:
    """The PTX of a softmax whose rows fill the registers of 8 warps."""
    arguments = (F32, F32, 16384, 16384)
    options = {"BLOCK": 16384, "num_warps": 8}
    return ptx_of(request_of(benchmark_kernels().softmax, arguments, options))


def test_a_kernel_just_above_a_boundary_comes_below_it() -> None:
    ptx = wide_softmax()
    plain = assemble_ptx(ptx, "sm_90a").resources
    fitted = assemble_for_occupancy(ptx, MACHINE, CompileOptions()).resources
    assert ctas(plain.registers, 256) == 2 and ctas(fitted.registers, 256) == 3
    assert fitted.spill_store_bytes + fitted.spill_load_bytes <= 16


def test_a_register_limit_of_the_author_is_left_alone() -> None:
    ptx = wide_softmax()
    assert assemble_for_occupancy(ptx, MACHINE, CompileOptions(maxnreg=128)).ptx == ptx


def dying_at_the_directive(folder: Path) -> Assembler:
    """A ptxas that a signal ends where it is told how many ctas an SM should hold."""
    real = find_assembler()
    script = folder / "ptxas"
    script.write_text(
        "#!/bin/sh\n"
        'for file in "$@"; do case "$file" in *.ptx) '
        'grep -q minnctapersm "$file" && kill -SEGV $$;; esac; done\n'
        f'exec {real.path} "$@"\n'
    )
    script.chmod(0o755)
    return Assembler(script, real.version)


def test_a_ptxas_that_dies_the_second_time_leaves_the_first_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = dying_at_the_directive(tmp_path)
    monkeypatch.setattr("tilewright.targets.nvidia.assembler.find_assembler", lambda: tool)
    assert (
        "minnctapersm" not in assemble_for_occupancy(wide_softmax(), MACHINE, CompileOptions()).ptx
    )


def test_a_ptxas_that_dies_is_named_with_its_signal(tmp_path: Path) -> None:
    ptx = wide_softmax().replace(".reqntid 256", ".minnctapersm 2\n.reqntid 256")
    with pytest.raises(AssemblerFailed, match="died of SIGSEGV on this kernel"):
        assemble_ptx(ptx, "sm_90a", assembler=dying_at_the_directive(tmp_path))
