"""`python -m tests.fuzz --count N --seed S --jobs J`: generate, compare, reduce, report."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from tests.fuzz.farm import Farm, variants_of
from tests.fuzz.generator import generate
from tests.fuzz.oracle import AS_TEXT, GPU, SIMULATED, VARIANTS, Finding
from tests.fuzz.program import Program
from tests.fuzz.reduction import reduce


@click.command()
@click.option("--count", default=100, help="How many programs.")
@click.option("--seed", default=0, help="The first seed; program k has seed + k.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder for findings.")
@click.option("--reduce/--no-reduce", "is_reducing", default=True, help="Shrink what fails.")
@click.option("--jobs", default=1, help="How many worker processes.")
@click.option("--limit", default=0.0, help="Stop after so many seconds; 0 is no limit.")
@click.option("--brisk/--thorough", "is_brisk", default=False, help="One compilation a program.")
@click.option("--variant", "variants", multiple=True,
              type=click.Choice((*VARIANTS, SIMULATED, AS_TEXT, GPU)),
              help="What to compare beside the default compilation.")  # fmt: skip
def main(
    count: int,
    seed: int,
    out: Path | None,
    is_reducing: bool,
    jobs: int,
    limit: float,
    is_brisk: bool,
    variants: tuple[str, ...],
) -> None:
    """Compare the interpreter and the compiled kernel on random programs."""
    started, kinds = time.perf_counter(), Counter[str]()
    new: list[tuple[int, Finding]] = []
    num_done = 0

    def seeds() -> Iterator[int]:
        for number in range(seed, seed + count):
            if limit and time.perf_counter() - started > limit:
                return
            yield number

    with Farm(jobs, variants, is_brisk) as farm:
        for number, finding in farm.run(seeds()):
            assert isinstance(number, int)
            num_done += 1
            if num_done % 100 == 0:
                print(f"{num_done} programs\r", end="", file=sys.stderr, flush=True)
            if finding is None:
                continue
            print(f"--- seed {number}: {finding.kind}", flush=True)
            kinds[finding.kind] += 1
            if kinds[finding.kind] == 1:
                new.append((number, finding))
    for number, finding in new:
        program = generate(number)
        if is_reducing:
            program, finding = shrink(program, finding, variants, is_brisk)
        show(program, finding, number, out)
    seconds, num_failed = time.perf_counter() - started, kinds.total()
    print(f"{num_done} programs from seed {seed}: {num_failed} failed, {seconds:.1f} s")
    sys.exit(1 if num_failed else 0)


def shrink(
    program: Program, finding: Finding, variants: tuple[str, ...], is_brisk: bool
) -> tuple[Program, Finding]:
    """The smallest program with a finding of the same kind."""
    tried = variants if is_brisk else variants_of(program, variants)
    # Only the ways that lead to the finding are run again; a death does not say which it was.
    tried = tuple(v for v in tried if finding.kind.startswith(v)) or tried
    with Farm(1, tried, is_brisk) as farm:

        def fails(candidate: Program) -> bool:
            found = farm.examine(candidate)
            return found is not None and found.kind == finding.kind

        small = reduce(program, fails)
        return small, farm.examine(small) or finding


def show(program: Program, finding: Finding, seed: int, out: Path | None) -> None:
    """Print a finding with its program, and write the program where asked."""
    print(f"--- seed {seed}, reduced: {finding.kind}")
    sizes = f"grid {program.grid}, M {program.rows}, N {program.columns}, n {program.num_elements}"
    print(f"{finding.text}\n{sizes}\n{program.source()}", flush=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"# {line}\n" for line in (sizes, *finding.text.splitlines()))
        (out / f"fuzz_{seed}.py").write_text(lines + program.source(), encoding="utf-8")


if __name__ == "__main__":
    main()
