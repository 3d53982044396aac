"""Every fenced Python block of the documents runs, top to bottom, one namespace a document.

A block is exempt only when its fence says why: ```python no-run: needs a GPU
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```python(?P<mark>[^\n]*)\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE)
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def script_of(document: str) -> str:
    """The blocks of a document as one script whose line numbers are the document's."""
    script = [""] * (document.count("\n") + 1)
    for match in FENCE.finditer(document):
        if match["mark"].strip().startswith("no-run:"):
            continue
        first = document.count("\n", 0, match.start("code"))
        lines = match["code"].splitlines()
        script[first : first + len(lines)] = lines
    return "\n".join(script)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_blocks_of_the_document_run(path: Path, tmp_path: Path) -> None:
    # A real file, so that the frontend can read the source of the kernels it defines; a process
    # of its own, since documents register ops and rules that no test may meet.
    script = tmp_path / f"{path.stem}.py"
    script.write_text(script_of(path.read_text(encoding="utf-8")), encoding="utf-8")
    paths = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_script_keeps_line_numbers_and_leaves_out_exempt_blocks() -> None:
    document = "a\n```python\nx = 1\n```\n```python no-run: slow\ny\n```\n```python\nz = 2\n```\n"
    assert script_of(document).split("\n") == [
        *["", "", "x = 1", ""],
        *["", "", ""],
        *["", "z = 2", "", ""],
    ]
