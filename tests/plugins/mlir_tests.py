"""Filecheck tests: each `*.mlir` file under tests/ is a test, run in this process.

The first comment lines say what to run, one line a run:

    // PASS: fold_constants            apply passes, check with the prefix CHECK
    // PASS(TIGHT): split{limit=2}     the same input, checked with the prefix TIGHT
    // ROUNDTRIP                       parse, print, parse and print: the two prints are equal
    // ERROR: split                    the run must fail; its message is what is checked

Several passes are separated by spaces. `// -----` splits a file into independent inputs whose
outputs are joined in the same way, so that one file can hold the small cases of one pass.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

DIRECTIVE = re.compile(r"^// (PASS|ROUNDTRIP|ERROR)(?:\((\w+)\))?(?::\s*(.*?))?\s*$", re.MULTILINE)
SPLIT = "// -----\n"


@dataclass(frozen=True)
class Run:
    """One directive of a file: what to run and which prefix checks its output."""

    kind: str
    prefix: str
    passes: str

    @property
    def title(self) -> str:
        """The name of the run in a report."""
        return " ".join((self.kind.lower(), self.passes or "")).strip()


class Mismatch(Exception):
    """The output of a run does not satisfy the file's checks."""


def run_pipeline(text: str, passes: str, name: str = "<text>") -> str:
    """Parse one module of the file `name`, apply `passes`, verify and print it."""
    from tilewright.compiler.named_passes import run_passes_on_text

    return run_passes_on_text(text, passes, name=name)


def runs_of(text: str) -> list[Run]:
    """The directives of a file, in order."""
    return [Run(m[1], m[2] or "CHECK", m[3] or "") for m in DIRECTIVE.finditer(text)]


def check(output: str, source: str, path: str, prefix: str) -> None:
    """Match `output` against the `prefix` lines of `source`; raises `Mismatch`."""
    options = Options(path, check_prefixes=[prefix])
    report = io.StringIO()
    with contextlib.redirect_stderr(report):
        parser = Parser(options, io.StringIO(source), *pattern_for_opts(options))
        code = Matcher(options, FInput(path, output), parser).run()
    if code != 0:
        raise Mismatch(f"{report.getvalue()}\n--- output ---\n{output}")


def execute(run: Run, text: str, path: str) -> None:
    """Do one run of a file and check what comes out."""
    pieces = pieces_of(text)
    if run.kind == "ROUNDTRIP":
        roundtrip(pieces)
        return
    work = output_of if run.kind == "PASS" else message_of
    output = SPLIT.join(work(piece, run.passes, Path(path).name) for piece in pieces)
    check(output, text, path, run.prefix)


def pieces_of(text: str) -> list[str]:
    """The inputs of a file, each behind as many empty lines as stand before it."""
    pieces: list[str] = []
    num_lines = 0
    for piece in text.split(SPLIT):
        pieces.append("\n" * num_lines + piece)
        num_lines += piece.count("\n") + 1
    return pieces


def output_of(piece: str, passes: str, name: str) -> str:
    """The module after the passes."""
    return run_pipeline(piece, passes, name)


def message_of(piece: str, passes: str, name: str) -> str:
    """The message of the error that the passes raise."""
    try:
        output = run_pipeline(piece, passes, name)
    except Exception as error:  # any refusal counts: the checks say which one is due
        return f"{type(error).__name__}: {error}\n"
    raise Mismatch(f"no error was raised\n--- output ---\n{output}")


def roundtrip(pieces: list[str]) -> None:
    """Check that printing is a fixed point after one parse."""
    for piece in pieces:
        first = run_pipeline(piece, "")
        second = run_pipeline(first, "")
        if first != second:
            raise Mismatch(f"the second print differs\n--- 1 ---\n{first}\n--- 2 ---\n{second}")


class MlirFile(pytest.File):
    """A file of filecheck tests."""

    def collect(self) -> Iterator[pytest.Item]:
        runs = runs_of(self.path.read_text(encoding="utf-8"))
        if not runs:
            raise self.CollectError(f"{self.path}: no `// PASS:`, `// ROUNDTRIP` or `// ERROR:`")
        for index, run in enumerate(runs):
            name = f"{index}:{run.title}" if len(runs) > 1 else run.title
            yield MlirItem.from_parent(self, name=name, run=run)


class MlirItem(pytest.Item):
    """One run of a filecheck file."""

    def __init__(self, *, run: Run, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._run = run

    def runtest(self) -> None:
        execute(self._run, self.path.read_text(encoding="utf-8"), str(self.path))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> object:
        if isinstance(excinfo.value, Mismatch):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: {self.name}"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> MlirFile | None:
    if file_path.suffix != ".mlir":
        return None
    return MlirFile.from_parent(parent, path=file_path)
