"""The benchmark kernels under compute-sanitizer: memory, races in shared memory, barriers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
REFUSALS = ("Device not supported", "not supported on this device")


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_kernels_are_clean_under(tool: str) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    assert sanitizer, "compute-sanitizer is not on PATH: it comes with the CUDA toolkit"
    program = [sys.executable, "-m", "tests.gpu.sanitized"]
    command = [sanitizer, "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9"]
    result = subprocess.run(
        [*command, *program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    output = result.stdout + result.stderr
    refused = next((text for text in REFUSALS if text in output), None)
    assert refused is None, f"the driver does not let compute-sanitizer in: {output[-2000:]}"
    assert result.returncode == 0, output[-4000:]
    assert "every kernel was launched" in output and "0 errors" in output.replace("hazards", "")
