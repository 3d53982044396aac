"""Kernels under compute-sanitizer: memory, races, barriers, and what nobody wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
REFUSALS = ("Device not supported", "not supported on this device")
FOUND = 9
"""What the tool exits with where it has found something."""
SECONDS = 120


def run_under(tool: str, *program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of ours under a tool."""
    sanitizer = shutil.which("compute-sanitizer")
    assert sanitizer, "compute-sanitizer is not on PATH: it comes with the CUDA toolkit"
    command = [sanitizer, "--tool", tool, "--report-api-errors", "no"]
    result = subprocess.run(
        [*command, "--error-exitcode", str(FOUND), sys.executable, "-m", *program],
        cwd=ROOT,
        env={**os.environ, "TILEWRIGHT_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    output = result.stdout + result.stderr
    refused = next((text for text in REFUSALS if text in output), None)
    assert refused is None, f"the driver does not let compute-sanitizer in: {output[-2000:]}"
    return result


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck", "initcheck"])
def test_kernels_are_clean_under(tool: str, tmp_path: Path) -> None:
    result = run_under(tool, "tests.gpu.sanitized", folder=tmp_path)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output[-4000:]
    assert "every kernel was launched" in output
    assert "0 errors" in output.replace("hazards displayed (", "")


@pytest.mark.parametrize(
    ("fault", "tool", "said"),
    [
        ("past-the-end", "memcheck", "Invalid __global__ write"),
        ("unwritten", "initcheck", "Uninitialized __global__ memory read"),
        ("divergent", "synccheck", "Divergent thread(s) in warp"),
    ],
)
def test_a_planted_fault_is_seen(fault: str, tool: str, said: str, tmp_path: Path) -> None:
    """Else a clean run would say nothing."""
    result = run_under(tool, "tests.gpu.faulty", fault, folder=tmp_path)
    assert result.returncode == FOUND and said in result.stdout + result.stderr


def test_copies_of_the_engine_are_out_of_sight(tmp_path: Path) -> None:
    """A tensor map of more rows than the tensor has: where this fails, the tool has learnt it."""
    result = run_under("memcheck", "tests.gpu.faulty", "map-past-the-end", folder=tmp_path)
    assert result.returncode == 0 and "was launched" in result.stdout
