"""`tilewright compile --target sm_90a`: a GPU's code and figures on a machine without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilewright.tools.main import tool

pytestmark = pytest.mark.ptxas

KERNELS = '''
import numpy as np
import tilewright
import tilewright.language as tl


@tilewright.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Doubles."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


def main():
    x = np.zeros(1000, np.float32)
    for num_warps in (4, 8):
        scale[(4,)](x, x, 1000, BLOCK=256, num_warps=num_warps)
'''
ARGUMENTS = ("--arg", "x_ptr=*fp32:16", "--arg", "out_ptr=*fp32:16", "--arg", "n=i32:16")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return path


def call(*arguments: object) -> str:
    result = CliRunner().invoke(tool, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_described_arguments_give_ptx_cubin_and_figures(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = call(
        *("compile", file, "--target", "sm_90a", "-o", out, *ARGUMENTS),
        *("--arg", "BLOCK=1024", "--option", "num_warps=2"),
    )
    (folder,) = out.iterdir()
    names = {path.name for path in folder.iterdir()}
    assert {"scale.cubin", "metadata.json", "request.json"} <= names
    (ptx,) = folder.glob("*.ptx")
    assert ".reqntid 64" in ptx.read_text() and "ld.global.v4" in ptx.read_text()
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["registers"] > 0 and metadata["spill_store_bytes"] == 0
    assert "2 warps" in shown and " on an SM, " in shown


def test_a_file_that_is_run_has_the_options_of_its_launches(file: Path) -> None:
    shown = call("compile", file, "--target", "sm_90a")
    assert "4 warps" in shown and "8 warps" in shown


def test_the_stages_of_a_gpu_can_be_printed(file: Path) -> None:
    arguments = ("--target", "sm_90a", *ARGUMENTS, "--arg", "BLOCK=256")
    assert ".entry scale" in call("ir", file, "--stage", "ptx", *arguments)
    assert call("ir", file, "--list", *arguments).split()[-1] == "ptx"


def test_an_unknown_machine_lists_those_there_are(file: Path) -> None:
    result = CliRunner().invoke(tool, ["compile", str(file), "--target", "sm_20"])
    assert result.exit_code == 1
    assert "the machines are cpu, mlir, sm_90a" in result.output


def test_a_kernel_is_explained_in_its_own_lines_with_registers_and_occupancy(file: Path) -> None:
    arguments = ("--target", "sm_90a", *ARGUMENTS, "--arg", "BLOCK=1024", "--option", "num_warps=2")
    shown = call("explain", file, *arguments)
    assert "kernels.py:12  tl.store(out_ptr + offsets" in shown
    assert "4 × 16 B" in shown and "16 / 16" in shown
    assert "registers ·" in shown and " on an SM, " in shown


@pytest.mark.parametrize("stage", ["t1", "copy-async", "place-shared", "t2"])
def test_every_level_of_the_schedule_can_be_printed(file: Path, stage: str) -> None:
    arguments = ("--target", "sm_90a", *ARGUMENTS, "--arg", "BLOCK=256")
    shown = call("ir", file, "--stage", stage, *arguments)
    assert "#layout0 = #ttg.linear<" in shown and "tensor<256xf32, #layout" in shown
