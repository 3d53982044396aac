"""`python -m benchmarks.gpu`: measure on this machine's NVIDIA GPU, beside Triton and torch.

Each family is a module with a name, `FAMILY`, and its `rows()`; one that breaks off leaves the
others alone and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import traceback
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from benchmarks.harness import Row
from benchmarks.report import HEADER, cells, show_row

FAMILIES = (
    "gpu_memory_bound",
    "gpu_rows_ahead",
    "gpu_matrix",
    "gpu_schedules",
    "gpu_odd",
    "gpu_walks",
    "gpu_bytes",
    "gpu_gradients",
    "gpu_grouped",
    "gpu_gathered",
    "gpu_weights",
    "gpu_launches",
    "gpu_startup",
)
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("tilewright", "llvmlite", "xdsl", "torch", "triton", "cuda-bindings")


def main() -> int:
    """Run the families asked for and write their rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    options = parser.parse_args()
    print(f"machine: {machine_name()}", flush=True)
    rows: list[Row] = []
    broken = [name for name in options.only if not collect(name, rows)]
    print(f"written to {write(rows, options.output)}")
    if broken:
        print(f"broke off: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def machine_name() -> str:
    """The GPU as a word for file names."""
    return torch.cuda.get_device_name().lower().replace(" ", "-")


def collect(name: str, rows: list[Row]) -> bool:
    """Add the rows of a family as they come; whether all of it ran."""
    try:
        for row in importlib.import_module(f"benchmarks.{name}").rows():
            rows.append(row)
            print(show_row(row), flush=True)
    except Exception:  # whatever one family runs into, the others are measured
        traceback.print_exc()
        return False
    return True


def write(rows: list[Row], folder: Path) -> Path:
    """Put the rows into this GPU's files in place of older rows of the same families."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"gpu-{machine_name()}.json"
    older = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    families = {row.family for row in rows}
    kept = [row for row in older if row["family"] not in families]
    document = {
        "gpu": torch.cuda.get_device_name(),
        "versions": versions(),
        "date": date.today().isoformat(),
        "rows": [*kept, *(row.to_json() for row in rows)],
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = [
        f"# {document['gpu']}",
        "",
        f"{document['date']}; " + ", ".join(f"{n} {v}" for n, v in versions().items()) + ".",
        "",
        "Ratios say how many times as fast as the peer in the same run; other amounts are upper "
        "limits. Written by `make gpu-bench`.",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{'---|' * len(HEADER)}",
        *(f"| {' | '.join(cells(row))} |" for row in document["rows"]),
    ]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def versions() -> dict[str, str]:
    """The versions of what the figures depend on."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
