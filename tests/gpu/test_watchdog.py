"""A program that hangs on a GPU says what each role waits for, and its process goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]


def report_of(fault: str, folder: Path) -> str:
    """What the process of a launch with a planted fault says."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.unit.targets.nvidia.hanging", fault],
        cwd=ROOT,
        env={**os.environ, "TILEWRIGHT_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = result.stdout + result.stderr
    assert result.returncode == 3, said
    assert "waited for 1 s" in said
    return said


def test_a_missing_release_is_reported(tmp_path: Path) -> None:
    said = report_of("release", tmp_path)
    assert "load waits for phase 0 of empty[0] of ring" in said
    assert "math 0 waits for phase 1 of full[0] of ring" in said
    assert "math 1 waits for phase 1 of full[0] of ring" in said


def test_a_turn_that_is_not_passed_is_reported(tmp_path: Path) -> None:
    said = report_of("turn", tmp_path)
    assert "math 1 waits for its turn at tiles (" in said, said
    assert "hanging.py:" in said
