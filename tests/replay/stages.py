"""Digests of what each pass leaves of kernels of the corpus, written to files.

Runs against the sources that are on `sys.path`, as `texts.py` does. Layouts that are annotated do
not count: the types have them as soon as they change anything.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.corpus.everything import CASES
from tests.replay.texts import file_name, requests
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import stages

_LAYOUT = re.compile(r'(, )?tw\.layout = #tw\.layout<"[^"]*">')
_LAST = "llir"


def digests(request: CompileRequest) -> Iterator[tuple[str, str]]:
    """The stages of a request as far as its text, each with a digest of what it leaves."""
    try:
        for name, show in stages(request):
            text = _LAYOUT.sub("", show()).replace(" {}", "")
            yield name, hashlib.sha256(text.encode()).hexdigest()[:16]
            if name == _LAST:
                return
    except Exception as error:
        yield f"{type(error).__name__}", str(error).splitlines()[0]


def write_digests(folder: Path, names: frozenset[str], part: int, num_parts: int) -> None:
    """Write the digests of every `num_parts`-th case from `part` on, where it is named."""
    for case in CASES[part::num_parts]:
        wanted = [machine for machine in ("cpu", "sm_90a") if file_name(case, machine) in names]
        if not wanted:
            continue
        for machine, request in requests(case):
            if machine in wanted:
                lines = (f"{name}\t{digest}" for name, digest in digests(request))
                path = folder / file_name(case, machine)
                path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    named = frozenset((Path(sys.argv[1]) / "names").read_text(encoding="utf-8").split("\n"))
    write_digests(Path(sys.argv[1]), named, int(sys.argv[2]), int(sys.argv[3]))
