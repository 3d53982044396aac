"""The text that each kernel of the corpus is emitted as, written to files.

Runs against the sources that are on `sys.path`, which may be an older commit than this file:
it names only what the compiler's spine has had from the start.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.corpus.case import Case
from tests.corpus.everything import CASES
from tests.corpus.run import prepare, reduced_machine
from tests.corpus.threads import gpu_request
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import stage_text

_NARROW = ("avx512", "avx10", "amx", "evex512", "avxvnni", "avxneconvert")


def requests(case: Case) -> Iterator[tuple[str, CompileRequest]]:
    """A case's request for each machine that is replayed, by the machine's name."""
    yield "cpu", prepare(case, reduced_machine(without=_NARROW)).request
    yield "sm_90a", gpu_request(case)


def emitted(request: CompileRequest) -> str:
    """The text for the assembler, or what stood in its way."""
    try:
        return stage_text(request, "llir")
    except Exception as error:
        return f"; {type(error).__name__}: {str(error).splitlines()[0]}\n"


def file_name(case: Case, machine: str) -> str:
    """A file name for a case on a machine."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in case.name)
    tag = hashlib.sha256(case.name.encode()).hexdigest()[:6]
    return f"{safe[:80]}-{tag}.{machine}.ll"


def write_texts(folder: Path, part: int, num_parts: int) -> None:
    """Write the texts of every `num_parts`-th case from `part` on."""
    # Debug information names files, and the two trees stand in different folders.
    here = str(Path.cwd())
    for case in CASES[part::num_parts]:
        for machine, request in requests(case):
            text = emitted(request).replace(here, "")
            (folder / file_name(case, machine)).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_texts(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
