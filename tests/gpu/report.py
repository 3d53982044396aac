"""`python -m tests.gpu.report FOLDER`: everything that only a GPU can tell, in one command.

The parts run side by side, each in processes of its own with a log in FOLDER, until all are done
or the time is over; then what each of them found is printed, worst first. Programs of others in
a folder named by `--programs` run as they are, with Tilewright under the name `triton`, their
benchmarks cut short (`tests/gpu/bounded.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
_SHOWN_LINES = 12


@dataclass(frozen=True)
class Part:
    """One command with a log of its own; `is_models` says that its results are lines of JSON."""

    name: str
    command: tuple[str, ...]
    is_models: bool = False


def parts_of(folder: Path, programs: Path | None, seconds: float) -> list[Part]:
    """All parts."""
    python = sys.executable
    pytest = (python, "-m", "pytest", "-q", "-p", "no:benchmark", "-p", "no:cacheprovider",
              "-m", "gpu", "--tb=short")  # fmt: skip
    fuzz = (python, "-m", "tests.fuzz", "--count", "2000", "--seed", "700000", "--jobs", "6",
            "--variant", "gpu", "--limit", str(seconds - 90))  # fmt: skip
    models = [
        Part(
            group,
            (python, "tests/gpu/torch_models.py", str(folder / f"{group}.jsonl"), group),
            is_models=True,
        )
        for group in ("flex", "gemm", "reductions", "training")
    ]
    found = sorted(programs.resolve().glob("*.py")) if programs is not None else []
    bounded = (python, "-m", "tilewright", "run", "tests/gpu/bounded.py", "--tests", "")
    return [
        Part("attention", (*pytest, "tests/gpu/test_attention.py")),
        Part(
            "products",
            (
                *pytest,
                "tests/gpu/test_products.py",
                "tests/gpu/test_overlap.py",
                "tests/gpu/test_idioms.py",
            ),
        ),
        Part("fuzz", fuzz),
        *models,
        *(Part(path.stem, (*bounded, str(path))) for path in found),
    ]


def environment_of(folder: Path, name: str) -> Mapping[str, str]:
    """The environment of a part: caches of its own, our sources first."""
    before = os.environ.get("PYTHONPATH", "")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT / "src"), str(ROOT), before))),
        "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "agg",
        "TILEWRIGHT_CACHE_DIR": str(folder / "caches" / name),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "caches" / f"{name}-inductor"),
    }


def summary(part: Part, folder: Path, code: int | None, seconds: float) -> str:
    """What a part found: a line, and the end of its log where it failed."""
    state = "over time" if code is None else "ok" if code == 0 else f"ended with {code}"
    head = f"=== {part.name}: {state}, {seconds:.0f} s"
    lines = (folder / f"{part.name}.log").read_text(encoding="utf-8", errors="replace").splitlines()
    results = folder / f"{part.name}.jsonl"
    if part.is_models and results.exists():
        rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
        ended = {row["name"]: row for row in rows if "problem" in row}
        wrong = [row for row in ended.values() if row["problem"]]
        running = [row["name"] for row in rows if row["name"] not in ended]
        head += f", {len(ended) - len(wrong)} of {len(ended)} right"
        texts = [f"--- {row['name']}: {_end(row['problem'])}" for row in wrong]
        texts += [f"--- {name}: did not end" for name in running]
        return "\n".join((head, *texts))
    keep = 60 if part.name in ("fuzz", "attention", "products") else _SHOWN_LINES
    return "\n".join((head, *lines[-keep:])) if code else "\n".join((head, *lines[-2:]))


def _end(text: str) -> str:
    """The last lines of a traceback."""
    return "\n".join(text.strip().splitlines()[-6:])[-700:]


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--limit", default=520.0, help="Stop what still runs after so many seconds.")
@click.option("--programs", type=click.Path(path_type=Path, exists=True), default=None)
@click.option("--part", "chosen", multiple=True, help="Only these parts.")
def main(folder: Path, limit: float, programs: Path | None, chosen: tuple[str, ...]) -> None:
    """Run the parts side by side and print what they found."""
    (folder / "caches").mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    running: dict[Part, subprocess.Popen[bytes]] = {}
    for part in parts_of(folder, programs, limit):
        if chosen and part.name not in chosen:
            continue
        with (folder / f"{part.name}.log").open("wb") as log:
            running[part] = subprocess.Popen(
                part.command, cwd=ROOT, env=environment_of(folder, part.name),
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
    ended: dict[Part, tuple[int | None, float]] = {}
    for part, process in running.items():
        try:
            code = process.wait(max(0.1, limit - (time.monotonic() - started)))
        except subprocess.TimeoutExpired:
            process.kill()
            code = None
        ended[part] = code, time.monotonic() - started
    failed = [part for part, (code, _) in ended.items() if code != 0]
    for part in (*(p for p in ended if p not in failed), *failed):
        print(summary(part, folder, *ended[part]), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
