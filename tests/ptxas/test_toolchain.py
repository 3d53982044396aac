"""The road to NVIDIA machine code: LLVM writes PTX, and ptxas assembles it."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import llvmlite.binding as llvm
import pytest

pytestmark = pytest.mark.ptxas

ELF_MAGIC = b"\x7fELF"
ARCHITECTURE = "sm_90a"

KERNEL = """
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

define ptx_kernel void @scale(ptr addrspace(1) %data, float %factor) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %address = getelementptr float, ptr addrspace(1) %data, i32 %lane
  %value = load float, ptr addrspace(1) %address
  %scaled = fmul float %value, %factor
  store float %scaled, ptr addrspace(1) %address
  ret void
}
"""


@pytest.fixture(scope="module")
def ptxas() -> Path:
    """The ptxas of this machine: on PATH, else the one of the nvidia-cuda-nvcc wheel."""
    on_path = shutil.which("ptxas")
    if on_path is not None:
        return Path(on_path)
    packages = Path(sysconfig.get_path("purelib"))
    found = sorted(packages.glob("nvidia/*/bin/ptxas"))
    if not found:
        pytest.fail("no ptxas on PATH and no nvidia-cuda-nvcc wheel; run `make ptxas-test`")
    return found[-1]


@pytest.fixture(scope="module")
def ptx() -> str:
    """PTX of the test kernel."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(KERNEL)
    module.verify()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu=ARCHITECTURE, features="+ptx80")
    return machine.emit_assembly(module)


def assemble(ptxas: Path, source: str, tmp_path: Path) -> tuple[Path, subprocess.CompletedProcess]:
    path, cubin = tmp_path / "kernel.ptx", tmp_path / "kernel.cubin"
    path.write_text(source, encoding="utf-8")
    command = [str(ptxas), "-v", f"-arch={ARCHITECTURE}", str(path), "-o", str(cubin)]
    return cubin, subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_llvm_emits_an_entry_for_the_architecture(ptx: str) -> None:
    assert ".visible .entry scale" in ptx
    assert f".target {ARCHITECTURE}" in ptx


def test_ptxas_assembles_what_llvm_emits(ptxas: Path, ptx: str, tmp_path: Path) -> None:
    cubin, result = assemble(ptxas, ptx, tmp_path)
    assert result.returncode == 0, result.stderr
    assert cubin.read_bytes()[:4] == ELF_MAGIC


def test_ptxas_reports_registers_and_no_spills(ptxas: Path, ptx: str, tmp_path: Path) -> None:
    _, result = assemble(ptxas, ptx, tmp_path)
    assert "0 bytes spill stores" in result.stderr
    assert "registers" in result.stderr


def test_ptxas_refuses_an_unknown_instruction(ptxas: Path, ptx: str, tmp_path: Path) -> None:
    broken = ptx.replace("mul.rn.f32", "mul.no_such_thing.f32")
    assert broken != ptx
    _, result = assemble(ptxas, broken, tmp_path)
    assert result.returncode != 0
