"""What `tilewright explain` prints of a kernel for a CPU that does not depend on the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.compiler.stages import schedule_of
from tilewright.machine.cpus import MADE_UP_AMX_CPU
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.report import NestReport
from tilewright.tools.collect import requests_of
from tilewright.tools.explain_nests import explain_nests

KERNEL = """
import tilewright
import tilewright.language as tl


@tilewright.jit
def attend(q, k, out, turns, TURNS: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    x, total = tl.load(q + places), tl.zeros((N,), tl.float32)
    for turn in range(TURNS or turns):
        scores = tl.dot(x, tl.load(k + turn * N * N + places))
        total += tl.sum(tl.exp(scores), axis=1)
    tl.store(out + i, total)
"""


def report_of(path: Path, turns: int) -> NestReport:
    path.write_text(KERNEL)
    described = ("q=*bf16:16", "k=*bf16:16", "out=*fp32:16", "turns=i32", f"TURNS={turns}", "N=64")
    (request,) = requests_of(path, "", described).requests
    report = schedule_of(replace(request, machine=MADE_UP_AMX_CPU)).report
    assert isinstance(report, NestReport)
    return report


@pytest.mark.parametrize("turns", [12, 0])
def test_the_report_says_first_what_takes_the_time(
    turns: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    explain_nests(report_of(tmp_path / "kernel.py", turns))
    shown = capsys.readouterr().out
    golden(f"explain_{turns or 'unknown'}_turns", shown.split("\n  nest 1:")[0] + "\n")
