"""Processes that share a cache directory and die see whole values or misses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.concurrency.cache_race import LIMIT_BYTES


def _run(*arguments: str) -> dict[str, object]:
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(entry for entry in sys.path if entry))
    done = subprocess.run(
        [sys.executable, "-m", "tests.concurrency.cache_race", *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _race(root: Path, seconds: float, seed: int) -> None:
    print(f"seed {seed}")
    found = _run("race", str(root), str(seconds), str(seed))
    print(found)
    assert found["violations"] == []
    puts, hits, killed = found["puts"], found["hits"], found["killed"]
    assert isinstance(puts, int) and isinstance(hits, int) and isinstance(killed, int)
    assert puts > 50 and hits > 50 and killed > 20
    size_bytes = found["size_bytes"]
    assert isinstance(size_bytes, int) and size_bytes <= 4 * LIMIT_BYTES


def test_killed_processes_leave_whole_values_or_misses(tmp_path: Path) -> None:
    _race(tmp_path, seconds=2.5, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_killed_processes_leave_whole_values_or_misses_for_long(tmp_path: Path, seed: int) -> None:
    _race(tmp_path, seconds=30, seed=seed)


def test_put_that_dies_at_any_step_leaves_the_old_value_or_the_new(tmp_path: Path) -> None:
    found = _run("crash", str(tmp_path))
    assert isinstance(found["points"], int) and found["points"] > 40
