"""A program that hangs on a GPU says what each role waits for, and its process goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]


def test_a_missing_release_is_reported(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.unit.targets.nvidia.hanging"],
        cwd=ROOT,
        env={**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = result.stdout + result.stderr
    assert result.returncode == 3, said
    assert "waited for 1 s" in said
    assert "load waits for phase 0 of empty[0] of ring" in said
    assert "math 0 waits for phase 1 of full[0] of ring" in said
    assert "math 1 waits for phase 1 of full[0] of ring" in said
