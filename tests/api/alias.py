"""`import triton` as Tilewright, for tests in this process and for scripts of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import tilewright

ALIAS = Path(tilewright.__file__).parent / "_alias"
if str(ALIAS) not in sys.path:
    sys.path.insert(0, str(ALIAS))


def run_script(
    path: Path, text: str, environment: Mapping[str, str], first: Path = ALIAS
) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own that finds modules in `first` before all else."""
    path.write_text(text, encoding="utf-8")
    source = str(Path(tilewright.__file__).parents[1])
    variables = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join((str(first), source))}
    return subprocess.run(
        [sys.executable, str(path)], env=variables, text=True, capture_output=True, check=False
    )
