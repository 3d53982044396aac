"""The handler of faults in AArch64 code, under qemu: it finds place, address and name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.aarch64.emulator import SYSROOT, tool
from tests.aarch64.machines import TRIPLE
from tilewright.codegen.object_file import code_range
from tilewright.codegen.optimize import compile_module
from tilewright.targets.cpu.runtime.fault_ir import ACTION_BYTES, HELP, fault_text
from tilewright.targets.cpu.runtime.pool_ir import pool_text

pytestmark = pytest.mark.aarch64

KERNEL = """
define i64 @kernel(ptr %from) {
  %word = load volatile i64, ptr %from
  ret i64 %word
}
"""
SOURCE = Path(__file__).with_name("faults.c")
SEGV = 11


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """The program that faults, and how long the code of its kernel is."""
    folder = tmp_path_factory.mktemp("faults")
    kernel = compile_module(KERNEL, "generic", (), TRIPLE).object
    native = pool_text("aarch64", is_linux=True) + fault_text("aarch64")
    objects = {"kernel.o": kernel, "native.o": compile_module(native, "generic", (), TRIPLE).object}
    for name, content in objects.items():
        (folder / name).write_bytes(content)
    numbers = [f"-DACTION_BYTES={ACTION_BYTES}", f"-DHELP_BYTES={len(HELP)}"]
    command = [tool("aarch64-linux-gnu-gcc"), "-O1", "-Wall", "-Werror", *numbers, str(SOURCE)]
    path = folder / "program"
    subprocess.run(
        [*command, *(str(folder / name) for name in objects), "-o", str(path)], check=True
    )
    place = code_range(kernel, "kernel")
    assert place is not None
    assert place[0] == 0
    return str(path), place[1]


def run(program: tuple[str, int], place: str) -> subprocess.CompletedProcess[str]:
    path, size = program
    command = [tool("qemu-aarch64"), "-L", str(SYSROOT), path, place, str(size)]
    folder = Path(path).parent  # qemu leaves a core there
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_fault_in_a_kernel_names_it_and_its_address(program: tuple[str, int]) -> None:
    done = run(program, "kernel")
    assert done.returncode == -SEGV
    head = "tilewright: signal 11 (SIGSEGV) at address 0x00000123456789a8 in the kernel kernel\n"
    assert done.stderr.startswith(f"{head}  k.py:3, in kernel\n  A load or store probably lies")
    assert HELP in done.stderr


def test_a_fault_elsewhere_is_none_of_ours(program: tuple[str, int]) -> None:
    done = run(program, "foreign")
    assert done.returncode == -SEGV
    assert "tilewright" not in done.stderr
