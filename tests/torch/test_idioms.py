"""Idioms of programs that people have, under the name `triton`, on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
SCRIPT = Path(__file__).parents[1] / "gpu/idioms.py"


def test_every_idiom_works_on_the_cpu(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tilewright", "run", str(SCRIPT)]
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    assert done.stdout.count("ok ") == len(done.stdout.splitlines()) > 0
