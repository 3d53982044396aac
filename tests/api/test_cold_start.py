"""What a fresh process that compiles a kernel leaves unloaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import numpy as np
import tilewright as tw
import tilewright.language as tl

@tw.jit
def double(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * 2)

x = np.ones(16, np.float32)
double[(1,)](x, N=16)
assert x.sum() == 32 and tw.compile_statistics().compiled == 1
print(*(name for name in sys.argv[1:] if name in sys.modules))
"""
UNUSED = (
    *("xdsl.parser", "xdsl.printer", "xdsl.dialects.scf", "xdsl.pattern_rewriter"),
    *("tilewright.targets.nvidia", "cuda"),
    *("tilewright.interp.simt", "tilewright.ops.extern.reference", "fractions"),
)


def test_a_compile_loads_neither_parser_nor_printer_of_xdsl(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, str(script), *UNUSED, "importlib.metadata"]
    loaded = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=True
    ).stdout
    assert loaded.split() == []


def test_the_collector_does_not_walk_what_a_compile_loads(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    young = "print(sum(len(gc.get_objects(generation)) for generation in (0, 1)))"
    script.write_text(f"import gc{SCRIPT}\n{young}")
    environment = {
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, str(script)]
    told = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=True
    ).stdout
    # What xDSL and the compiler define is 90,000 objects; what one compile leaves, a few thousand.
    assert int(told) < 30_000


def test_the_package_alone_loads_few_modules() -> None:
    text = "import sys, tilewright; print(*sys.modules)"
    environment = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-c", text]
    modules = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=True
    ).stdout.split()
    loaded = [name for name in modules if name.startswith("tilewright")]
    other = set(modules) - set(loaded)
    for name in ("pathlib", "platformdirs", "numpy", "ml_dtypes"):
        assert name not in other, name
    unused = ("tilewright.machine", "tilewright.runtime.accessors", "tilewright.compiler")
    assert not set(loaded) & set(unused)
    assert len(loaded) <= 63, sorted(loaded)  # an average one takes 0.3 ms to load
