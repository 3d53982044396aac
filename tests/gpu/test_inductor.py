"""torch.compile on a GPU through `triton`: the graphs of the CPU's acceptance tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
SCRIPT = Path(__file__).with_name("inductor_graphs.py")
LISTED = SCRIPT.parents[1] / "torch/graphs.py"
NAMES = re.findall(r"^@graph\(.*\n^def (\w+)\(", LISTED.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What went wrong with each graph that ran, by name; all in one process of their own."""
    folder = tmp_path_factory.mktemp("inductor")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            (
                str(SCRIPT.parents[2] / "src/tilewright/_alias"),
                str(SCRIPT.parents[2] / "src"),
                os.environ.get("PYTHONPATH", ""),
            )
        ),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TILEWRIGHT_CACHE_DIR": str(folder / "kernels"),
    }
    results = folder / "results.jsonl"
    command = [sys.executable, str(SCRIPT), str(results)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    found = {row["name"]: row["problem"] for row in map(json.loads, lines)}
    missing = f"did not run; the process ended with {done.returncode}:\n{done.stderr[-3000:]}"
    return {name: found.get(name, missing) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_graph_gives_what_eager_gives_on_the_gpu(
    name: str, problems: Mapping[str, str]
) -> None:
    assert problems[name] == ""
