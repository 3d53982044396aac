"""Equal kernels become equal PTX, whatever the order in which Python hashes strings."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.unit.targets.nvidia.ptx_digest import BENCHMARKS


def digests_under(seed: int) -> str:
    """What a process of its own prints when it hashes strings by `seed`."""
    command = [sys.executable, "-m", "tests.unit.targets.nvidia.ptx_digest"]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return result.stdout


def test_the_order_of_hashes_does_not_reach_the_ptx() -> None:
    first, second = digests_under(1), digests_under(2)
    assert len(first.splitlines()) == len(BENCHMARKS) + 4
    assert first == second
