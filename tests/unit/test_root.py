"""The root of the repository holds what a newcomer needs, and nothing that was left there."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXPECTED = {
    *(".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
    *("benchmarks", "compat", "constraints.txt", "docs", "examples", "pyproject.toml"),
    *("src", "tests"),
}


def test_the_root_has_no_scratch_files() -> None:
    listed = subprocess.check_output(["git", "ls-tree", "--name-only", "HEAD"], cwd=ROOT, text=True)
    assert set(listed.split()) == EXPECTED
