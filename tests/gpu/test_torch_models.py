"""Flex attention, templates of products, forms of reductions and training through torch.compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
SCRIPT = Path(__file__).with_name("torch_models.py")


@pytest.mark.parametrize("group", ["flex", "gemm", "reductions", "training"])
def test_compiled_models_are_as_near_to_float64_as_eager(group: str, tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "kernels"),
    }
    command = [sys.executable, str(SCRIPT), str(results), group]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    ended = {row["name"]: row["problem"] for row in rows if "problem" in row}
    died = [f"{row['name']}: did not end" for row in rows if row["name"] not in ended]
    found = [*died, *(f"{name}: {problem}" for name, problem in ended.items() if problem)]
    assert ended and not found, "\n".join((*found, done.stderr[-2000:]))
