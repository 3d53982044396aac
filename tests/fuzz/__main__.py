"""`python -m tests.fuzz --count N --seed S`: generate, compare, reduce, report."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from tests.fuzz.generator import generate
from tests.fuzz.oracle import SIMULATED, VARIANTS, Finding, examine
from tests.fuzz.program import Program
from tests.fuzz.reduction import reduce


@click.command()
@click.option("--count", default=100, help="How many programs.")
@click.option("--seed", default=0, help="The first seed; program k has seed + k.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder for findings.")
@click.option("--reduce/--no-reduce", "is_reducing", default=True, help="Shrink what fails.")
@click.option("--variant", "variants", multiple=True, type=click.Choice((*VARIANTS, SIMULATED)),
              help="What to compare beside the default compilation.")  # fmt: skip
def main(
    count: int, seed: int, out: Path | None, is_reducing: bool, variants: tuple[str, ...]
) -> None:
    """Compare the interpreter and the compiled kernel on random programs."""
    started, kinds = time.perf_counter(), set[str]()
    num_failed = 0
    for number in range(seed, seed + count):
        print(f"seed {number}\r", end="", file=sys.stderr, flush=True)
        chosen = variants or (VARIANTS[number % len(VARIANTS)],)
        program = generate(number)
        finding = examine(program, chosen)
        if finding is None:
            continue
        num_failed += 1
        is_new = finding.kind not in kinds
        kinds.add(finding.kind)
        if is_reducing and is_new:
            program, finding = shrink(program, finding, chosen)
        show(program, finding, number, out, is_new)
    seconds = time.perf_counter() - started
    print(f"{count} programs from seed {seed}: {num_failed} failed, {seconds:.1f} s")
    sys.exit(1 if num_failed else 0)


def shrink(
    program: Program, finding: Finding, variants: tuple[str, ...]
) -> tuple[Program, Finding]:
    """The smallest program with a finding of the same kind."""

    # Only the ways that lead to the finding are run again.
    variants = tuple(v for v in variants if finding.kind.startswith(v))

    def fails(candidate: Program) -> bool:
        found = examine(candidate, variants)
        return found is not None and found.kind == finding.kind

    small = reduce(program, fails)
    return small, examine(small, variants) or finding


def show(program: Program, finding: Finding, seed: int, out: Path | None, is_new: bool) -> None:
    """Print a finding, and write the program where asked."""
    print(f"--- seed {seed}: {finding.kind}")
    if not is_new:
        return
    sizes = f"grid {program.grid}, M {program.rows}, N {program.columns}, n {program.num_elements}"
    print(f"{finding.text}\n{sizes}\n{program.source()}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"# {line}\n" for line in (sizes, *finding.text.splitlines()))
        (out / f"fuzz_{seed}.py").write_text(lines + program.source(), encoding="utf-8")


if __name__ == "__main__":
    main()
