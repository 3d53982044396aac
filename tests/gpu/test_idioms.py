"""Idioms of programs that people have, under the name `triton`, on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
SCRIPT = Path(__file__).with_name("idioms.py")


def test_every_idiom_works_on_the_gpu() -> None:
    command = [sys.executable, "-m", "tilewright", "run", str(SCRIPT)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    assert done.stdout.count("ok ") == len(done.stdout.splitlines()) > 0
