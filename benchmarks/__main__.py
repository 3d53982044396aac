"""`python -m benchmarks`: measure every row beside its peer and write the results.

Each family runs in processes of its own, one for each number of threads: a thread pool's size
is fixed when it starts, and the spinning threads of one peer must not disturb the next row.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import machine_name, show_row, update_readme, write_results
from tilewright.support.errors import TilewrightError

FAMILIES = (
    *("memory_bound", "fused", "matrix", "few_rows", "exponential", "attention", "launches"),
    *("startup", "common", "inductor", "compile_growth", "tuning", "mlir"),
)
THREAD_VARIABLES = (
    *("TILEWRIGHT_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
    "OPENBLAS_NUM_THREADS",
)


def main() -> int:
    """Run the families asked for; the exit status is 1 when one of them broke off."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--no-write", action="store_true", help="print and write no file")
    parser.add_argument("--readme", action="store_true", help="put the figures into README.md")
    parser.add_argument("--triton-python", help="a Python that has triton: adds its interpreter")
    parser.add_argument("--child", nargs=3, metavar=("FAMILY", "THREADS", "FILE"), help="internal")
    options = parser.parse_args()
    if options.child:
        family, threads, file = options.child
        return run_family(family, int(threads), Path(file))
    print(f"machine: {machine_name()}", flush=True)
    names = list(options.only)
    rows: list[dict[str, object]] = []
    broken = [name for name in names if not collect(name, rows)]
    if options.triton_python:
        interpreter = importlib.import_module("benchmarks.triton_interpreter")
        names.append("triton_interpreter")
        rows.extend(interpreter.measure(options.triton_python))
    if not options.no_write:
        families = {importlib.import_module(f"benchmarks.{name}").FAMILY for name in names}
        results = write_results(rows, families)
        print(f"written to {results}")
        if options.readme:
            update_readme(results)
    if broken:
        print(f"broke off: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def collect(name: str, rows: list[dict[str, object]]) -> bool:
    """Run a family in child processes and take over its rows; whether all of it ran."""
    is_complete = True
    for threads in importlib.import_module(f"benchmarks.{name}").THREADS:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            command = [sys.executable, "-m", "benchmarks", "--child", name, str(threads), file.name]
            environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
            is_complete &= subprocess.run(command, env=environment, check=False).returncode == 0
            lines = Path(file.name).read_text(encoding="utf-8").splitlines()
        rows.extend(json.loads(line) for line in lines)
    return is_complete


def run_family(name: str, threads: int, file: Path) -> int:
    """In a child: print each row as it comes, and append it to `file`."""
    family = importlib.import_module(f"benchmarks.{name}")
    with file.open("a", encoding="utf-8") as out:
        try:
            for row in family.rows(threads):
                print(show_row(row), flush=True)
                out.write(json.dumps(row.to_json()) + "\n")
                out.flush()
        except TilewrightError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
