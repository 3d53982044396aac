"""`tilewright simulate`: the launches of a file on the simulator of a GPU's threads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from tilewright.compiler.simulated import DEFAULT_MACHINE, Simulation, collected_simulations
from tilewright.interp.simt.statistics import AccessStatistics, Report
from tilewright.support.dataclass import dataclass
from tilewright.support.environment import SIMULATE, set_variable, variable_text
from tilewright.support.source import Span, source_line
from tilewright.tools.collect import NoKernel, run_program
from tilewright.tools.kernel_file import FILE, FUNCTION
from tilewright.tools.show import echo_table
from tilewright.tools.timeline import write_timeline

# Below this share of its best an access is worth a line of its own.
_GOOD = 0.99


@click.command()
@FILE
@FUNCTION
@click.option("--machine", default=DEFAULT_MACHINE, show_default=True, help="The GPU to simulate.")
@click.option("--seed", type=int, help="Let warps take turns at random, to find other orders.")
@click.option(
    "--timeline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the first program: .svg, or .json for Perfetto.",
)
def simulate(
    file: tuple[Path, str], function: str, machine: str, seed: int | None, timeline: Path | None
) -> None:
    """Run a file with every kernel on a GPU's simulated threads, each access checked.

    No GPU is needed. Arrays are written as a GPU would write them. A data race, a missing
    fence, an access out of bounds, a read of shared memory that nobody wrote and a deadlock end
    the run with the kernel's line; bank conflicts and uncoalesced accesses are listed.
    A timeline shows what the first program of a launch does when, by a simple model of the
    machine: order and overlap are the program's, lengths are no measurement.
    The file is run as by `ir`; what it prints goes to stderr.
    """
    path, kernel = file
    is_drawn = timeline is not None
    with _simulating(machine), collected_simulations(seed, is_drawn) as simulations:
        error = run_program(path, lambda: bool(simulations), function, simulations.clear)
    shown = [s for s in simulations if kernel in ("", s.kernel)]
    if not shown and error is None:
        raise NoKernel(f"{path} launches no kernel {kernel}".rstrip())
    for number, simulation in enumerate(shown):
        _show(simulation)
        if timeline is not None and simulation.timeline is not None:
            suffix = f"-{number}" if number else ""
            target = timeline.with_name(f"{timeline.stem}{suffix}{timeline.suffix}")
            write_timeline(simulation.timeline, target, _title(simulation))
            click.echo(f"  timeline written to {target}")
    if error is not None:
        raise error


@contextmanager
def _simulating(machine: str) -> Generator[None]:
    """Launches are simulated for a time; behind it they run as before."""
    before = variable_text(SIMULATE.name)
    set_variable(SIMULATE.name, machine)
    try:
        yield
    finally:
        set_variable(SIMULATE.name, before)


def _title(simulation: Simulation) -> str:
    grid = "×".join(map(str, simulation.grid))
    return f"{simulation.kernel} on {simulation.machine}, {grid} programs"


def _show(simulation: Simulation) -> None:
    report = simulation.report
    click.secho(_title(simulation), bold=True)
    instructions = sum(report.instructions.values())
    click.echo(
        f"  no fault · {instructions} instructions of warps · {report.barriers} barriers · "
        f"{report.bank_conflicts()} wavefronts of bank conflicts"
    )
    slow = [line for line in line_accesses(report) if line.efficiency < _GOOD]
    for place, text in {_place(line.span): _text(line.span) for line in slow}.items():
        click.echo(f"    {place}  {text}")
    if slow:
        header = ("    access", "line", "per thread", "each warp", "best", "why")
        echo_table(header, [_row(line) for line in slow])


@dataclass(frozen=True)
class LineAccess:
    """What the accesses of one kind, space and width at one source line did together.

    *Units*: transactions are sectors of 32 bytes (global) or wavefronts (shared).
    """

    span: Span | None
    kind: str
    space: str
    bytes_per_thread: int
    num_instructions: int
    requests: int
    transactions: int
    ideal_transactions: int

    @property
    def efficiency(self) -> float:
        """Ideal transactions over actual ones, 1 at best."""
        return self.ideal_transactions / max(self.transactions, 1)


def line_accesses(report: Report) -> list[LineAccess]:
    """The memory instructions of a simulation by source line, global memory first."""
    groups: dict[tuple[object, ...], list[AccessStatistics]] = {}
    for access in (*report.global_accesses(), *report.shared_accesses()):
        key = (access.site.source, access.kind, access.space, access.bytes_per_thread)
        groups.setdefault(key, []).append(access)
    return [_together(members) for members in groups.values()]


def _together(members: Sequence[AccessStatistics]) -> LineAccess:
    first = members[0]
    return LineAccess(
        first.site.source,
        first.kind,
        first.space,
        first.bytes_per_thread,
        len(members),
        sum(m.sampled_requests for m in members),
        sum(m.transactions for m in members),
        sum(m.ideal_transactions for m in members),
    )


def _row(line: LineAccess) -> tuple[str, ...]:
    unit = "wavefronts" if line.space == "shared" else "sectors"
    requests = max(line.requests, 1)
    return (
        f"    {line.kind} {line.space}",
        _place(line.span),
        f"{line.num_instructions} × {line.bytes_per_thread} B",
        f"{line.transactions / requests:.3g} {unit}",
        f"{line.ideal_transactions / requests:.3g}",
        "bank conflicts" if line.space == "shared" else "not adjacent or not aligned",
    )


def _text(span: Span | None) -> str:
    return "" if span is None else source_line(span.file, span.line).strip()


def _place(span: Span | None) -> str:
    return "" if span is None else f"{Path(span.file).name}:{span.line}"
