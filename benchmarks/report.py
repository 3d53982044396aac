"""The table of results: on the terminal, as JSON and as Markdown, one file a machine."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.harness import PAIRS, TOLERANCE, Row
from tilewright.targets.cpu.host import host_machine

README_ROWS = 12
"""The README's table is short: the worst and the best of each family, then the worst."""
RESULTS = Path(__file__).parent / "results"
README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- speed: written by `python -m benchmarks --readme` -->", "<!-- /speed -->"
PACKAGES = ("tilewright", "llvmlite", "xdsl", "numpy", "torch", "triton")
HEADER = ("work", "threads", "measured", "bar", "", "ours", "peer", "note")
Json = Mapping[str, object]


def machine_name() -> str:
    """The machine in a word: the CPU as LLVM calls it, and how many of them."""
    return f"{host_machine().arch}-{os.cpu_count()}cpu"


def describe_machine() -> dict[str, object]:
    """What the results depend on."""
    host = host_machine()
    return {
        "cpu": host.arch,
        "model": _cpu_model(),
        "num_cpus": os.cpu_count(),
        "vector_bytes": host.vector_bytes,
        "l1d_bytes": host.l1_bytes,
        "l2_bytes": host.l2_bytes,
        "l3_bytes": host.l3_bytes,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def write_results(rows: Sequence[Json], families: Iterable[str]) -> Path:
    """Put the rows into this machine's files in place of older rows of the same families."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"cpu-{machine_name()}.json"
    replaced = set(families)
    older = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    kept = [row for row in older if row["family"] not in replaced]
    document = {
        "machine": describe_machine(),
        "versions": _versions(),
        "date": datetime.date.today().isoformat(),
        "rows": [*kept, *rows],
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(to_markdown(document), encoding="utf-8")
    return path


def to_markdown(document: Json) -> str:
    """The document as a page."""
    machine, versions = document["machine"], document["versions"]
    assert isinstance(machine, dict)
    assert isinstance(versions, dict)
    rows = document["rows"]
    assert isinstance(rows, list)
    lines = [
        f"# {machine['model']} ({machine['cpu']}), {machine['num_cpus']} CPUs",
        "",
        f"{document['date']}; Python {machine['python']}; "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ".",
        "",
        "Ratios say how many times as fast as the peer: medians over "
        f"{document.get('pairs', PAIRS)} interleaved pairs after "
        f"one that is dropped; they pass at the bar minus {TOLERANCE}. Other amounts are upper "
        f"limits. {document.get('remark', 'Written by `make bench`.')}",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{'---|' * len(HEADER)}",
        *(f"| {' | '.join(cells(row))} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def update_readme(results: Path) -> None:
    """Put the figures of a results file between the marks in the README."""
    document = json.loads(results.read_text(encoding="utf-8"))
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{START}\n{readme_table(document)}{END}{after}", encoding="utf-8")


def readme_table(document: Json) -> str:
    """The short form: work, what was measured, what it is compared with."""
    machine, rows = document["machine"], document["rows"]
    assert isinstance(machine, dict)
    assert isinstance(rows, list)
    rows = chosen_rows(rows, README_ROWS)
    lines = [
        f"Measured {document['date']} on {machine['num_cpus']} CPUs of an {machine['model']}",
        f"({machine['cpu']}), beside the peer in the same run, with as many threads. A ratio says",
        "how many times as fast as the peer. These are the worst and the best row of each",
        "family and the worst of the rest; `make bench` repeats them, and",
        "[`benchmarks/results`](benchmarks/results) has every figure.",
        *textwrap.wrap(str(document.get("remark", "")), 100),
        "",
        "| work | threads | measured | goal | |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        work, threads, measured, bar, verdict, *_ = cells(row)
        peer = f" {row['peer'].rsplit(' ', 2)[0]}" if row["peer"] else ""
        lines.append(f"| {work} | {threads} | {measured}{peer} | {bar} | {verdict} |")
    return "\n".join(lines) + "\n"


def chosen_rows(rows: Sequence[Json], count: int) -> list[Json]:
    """The worst and the best row of each family, then the worst of the others, in order."""
    ranked = sorted(
        (row for row in rows if _margin(row) is not None), key=lambda r: _margin(r) or 0
    )
    chosen: list[Json] = []
    for order in (ranked, ranked[::-1]):
        first = {row["family"]: row for row in reversed(order)}
        chosen += [row for row in first.values() if row not in chosen]
    chosen += [row for row in ranked if row not in chosen]
    kept = chosen[:count]
    return [row for row in rows if row in kept]


def _margin(row: Json) -> float | None:
    """How many times as good as its bar a row is; None without a bar or a value."""
    value, bar = row["value"], row["bar"]
    if (
        not isinstance(value, int | float)
        or not isinstance(bar, int | float)
        or not value
        or not bar
    ):
        return None
    return value / bar if row["unit"] == "x" else bar / value


def cells(row: Json) -> tuple[str, ...]:
    """The texts of one line."""
    return (
        str(row["work"]),
        str(row["threads"]),
        _amount(row["value"], str(row["unit"])),
        _bar(row["bar"], str(row["unit"])),
        str(row["verdict"]),
        str(row["ours"]),
        str(row["peer"]),
        str(row["note"]),
    )


def _amount(value: object, unit: str) -> str:
    if not isinstance(value, int | float):
        return "–"
    return f"{value:.2f} ×" if unit == "x" else f"{value:.3g} {unit}"


def _bar(bar: object, unit: str) -> str:
    if not isinstance(bar, int | float):
        return "–"
    return f"≥ {bar:g} ×" if unit == "x" else f"≤ {bar:g} {unit}"


def show_row(row: Row) -> str:
    """A line for the terminal."""
    work, threads, measured, bar, verdict, ours, peer, note = cells(row.to_json())
    sides = f"{ours} | {peer}" if peer else ours
    return (
        f"{work:56} {threads:>2}  {measured:>10}  {bar:>10}  {verdict:5}  {sides}  {note}".rstrip()
    )
