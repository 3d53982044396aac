"""Every fenced Python block of the documents runs, top to bottom, one namespace a document.

A block is exempt only when its fence says why: ```python no-run: needs a GPU
One that is a file of its own names it: ```python file: package/module.py
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


def write_files(document: str, folder: Path) -> list[Path]:
    """Write the blocks that are files into a folder."""
    written = []
    for match in FENCE.finditer(document):
        kind, _, name = match["mark"].strip().partition(":")
        if kind == "file":
            path = folder / name.strip()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(match["code"], encoding="utf-8")
            written.append(path)
    return written


def script_of(document: str) -> str:
    """The other blocks of a document as one script whose line numbers are the document's."""
    script = [""] * (document.count("\n") + 1)
    for match in FENCE.finditer(document):
        if match["mark"].strip().startswith(("no-run:", "file:")):
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
    document = path.read_text(encoding="utf-8")
    write_files(document, tmp_path)
    script.write_text(script_of(document), encoding="utf-8")
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


def test_blocks_that_are_files_are_written_and_not_run(tmp_path: Path) -> None:
    document = "```python file: p/q.py\nx = 1\n```\n```python\nimport p.q\n```\n"
    assert write_files(document, tmp_path) == [tmp_path / "p" / "q.py"]
    assert (tmp_path / "p" / "q.py").read_text() == "x = 1\n"
    assert script_of(document).split() == ["import", "p.q"]


def test_script_keeps_line_numbers_and_leaves_out_exempt_blocks() -> None:
    document = "a\n```python\nx = 1\n```\n```python no-run: slow\ny\n```\n```python\nz = 2\n```\n"
    assert script_of(document).split("\n") == [
        *["", "", "x = 1", ""],
        *["", "", ""],
        *["", "z = 2", "", ""],
    ]
