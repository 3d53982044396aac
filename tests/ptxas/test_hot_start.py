"""A fresh process that finds its GPU kernel in the disk cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ptxas

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import tilewright as tw
import tilewright.language as tl
from tests.unit.targets.nvidia.fake_cuda import FakeCuda, FakeTensor
from tilewright.targets.nvidia import driver

@tw.jit
def double(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * 2)

cuda = FakeCuda(num_params=1)
driver.open_cuda = lambda: cuda
double[(1,)](FakeTensor(0x1000), N=16)
assert len(cuda.launches) == 1
print(tw.compile_statistics().compiled, *(name for name in sys.argv[1:] if name in sys.modules))
"""
COMPILER = ("xdsl", "tilewright.compiler.compile", "tilewright.codegen.simt.context")


def test_a_cache_hit_imports_neither_xdsl_nor_the_compiler(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = {
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "PATH": os.environ["PATH"],
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, str(script), *COMPILER]

    def run() -> list[str]:
        return subprocess.check_output(command, env=environment, text=True).split()

    assert run() == ["1", *COMPILER]
    assert run() == ["0"]
