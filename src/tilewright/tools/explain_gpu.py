"""`tilewright explain --target sm_90a`: what the GPU's schedule made of a kernel, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click
from xdsl.dialects.builtin import ModuleOp

from tilewright.compiler.compile import FORM, compile_request, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import formed_request, schedule_of
from tilewright.ops.function import find_kernel
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.schedule.annotations import shared_bytes
from tilewright.support.errors import TilewrightError
from tilewright.support.source import source_line
from tilewright.targets.nvidia.explain.accesses import AccessSummary
from tilewright.targets.nvidia.explain.boxes import explain_boxes
from tilewright.targets.nvidia.explain.conversions import ConversionSummary
from tilewright.targets.nvidia.explain.kernel import KernelSummary, explain_kernel
from tilewright.targets.nvidia.explain.layout_provenance import Requirement
from tilewright.targets.nvidia.explain.without_effect import without_effect
from tilewright.targets.nvidia.manifest import NvidiaReport
from tilewright.targets.target import Scheduled, load_target
from tilewright.tools.compile import echo_remarks, echo_resources
from tilewright.tools.explain_schedule import echo_schedule
from tilewright.tools.explain_unasked import other_ways
from tilewright.tools.show import count_text, echo_table, size_text


def explain_gpu(request: CompileRequest, scheduled: Scheduled) -> None:
    """Print the report on one kernel, and what the assembler made of it where there is one."""
    found = _artifact_of(request)
    if isinstance(found, Artifact) and found.metadata.get(FORM):
        request = formed_request(request, found)
        scheduled = schedule_of(request)
    report = scheduled.report
    assert isinstance(report, NvidiaReport)
    kernel = find_kernel(scheduled.module)
    summary = explain_kernel(kernel, report.shared, report.ordering)
    tiles = to_tiles(request, load_target(request.target))
    _echo_lines(summary)
    said = echo_schedule(find_kernel(tiles), kernel, request.compile_options.num_stages is not None)
    for text in other_ways(request, tiles, kernel):
        click.echo(f"    unasked: {text}")
    for text in without_effect(request.compile_options, find_kernel(tiles), kernel):
        click.echo(f"    remark: {text}")
    _echo_accesses(summary.accesses)
    _echo_boxes(request, tiles)
    _echo_conversions(summary.conversions)
    _echo_staging(summary)
    _echo_products(summary)
    _echo_shared(summary, shared_bytes(kernel))
    _echo_barriers(summary)
    if isinstance(found, Artifact):
        echo_resources(request, found, said)
        return
    click.echo(f"  registers are not known: {found.summary}")
    if found.hint:
        click.echo(f"    {found.hint}")
    echo_remarks(scheduled.remarks, said)


def _artifact_of(request: CompileRequest) -> Artifact | TilewrightError:
    """What a request is compiled to; the error where this machine does not assemble it."""
    try:
        return compile_request(request, request.cache_key(compiler_fingerprint()))
    except TilewrightError as error:
        return error


def _echo_lines(summary: KernelSummary) -> None:
    """The source of every line that the tables below speak of."""
    places = [
        *(access.line for access in summary.accesses),
        *(conversion.line for conversion in summary.conversions),
        *(staged.line for staged in summary.staging),
        *(product.line for product in summary.products),
        *(piece.line for piece in summary.shared),
    ]
    known = {place: _number(place) for place in dict.fromkeys(places) if _number(place)}
    for place in sorted(known, key=lambda place: (place.rpartition(":")[0], known[place])):
        click.echo(f"    {_short(place)}  {_text_of(place)}")


def _echo_accesses(accesses: Iterable[AccessSummary]) -> None:
    rows = _counted(_access_row(access) for access in accesses)
    if rows:
        header = ("    global access", "line", "per lane", "sectors / least", "remarks")
        echo_table(header, rows)


def _access_row(access: AccessSummary) -> tuple[str, ...]:
    name, line = f"    {access.operation}", _short(access.line)
    if access.engine_bytes:
        return name, line, "", "", f"{size_text(access.engine_bytes)} by the copy engine"
    per_lane = f"{access.instructions} × {access.bytes_per_lane} B"
    return name, line, per_lane, f"{access.sectors:.3g} / {access.ideal:.3g}", access.why


def _echo_boxes(request: CompileRequest, tiles: ModuleOp) -> None:
    """Which of the plain accesses the copy engine could make, where the machine has one."""
    if not request.machine.has_tma:
        return
    rows = [
        (
            f"    {box.operation}",
            _short(box.line),
            "no" if box.why_not else "yes",
            box.why_not or ", ".join(box.tests),
        )
        for box in explain_boxes(tiles, request.machine)
    ]
    if rows:
        echo_table(("    by pointers", "line", "could be a block", "if, or why not"), rows)


def _echo_conversions(conversions: Iterable[ConversionSummary]) -> None:
    rows = [
        (
            "    conversion" + " in a loop" * conversion.in_loop,
            _short(conversion.line),
            conversion.kind,
            f"{conversion.cycles} cycles, {size_text(conversion.shared_bytes)}",
            str(conversion.conflicts),
            f"{_cause(conversion.made)}; {_cause(conversion.wanted)}",
        )
        for conversion in conversions
    ]
    if rows:
        header = ("    conversion", "line", "by", "cost", "bank conflicts", "because")
        echo_table(header, rows)


def _cause(requirement: Requirement) -> str:
    where = f" ({_short(requirement.line)})" if requirement.line else ""
    return f"{requirement.text}{where}"


def _echo_staging(summary: KernelSummary) -> None:
    rows = _counted(
        (
            f"    {staged.what}",
            _short(staged.line),
            f"{staged.bytes_per_lane} B",
            f"{staged.wavefronts} / {staged.ideal}",
        )
        for staged in summary.staging
    )
    if rows:
        echo_table(("    shared tile", "line", "per lane", "wavefronts / least"), rows)


def _echo_products(summary: KernelSummary) -> None:
    rows = [
        (
            f"    {'×'.join(map(str, product.shape))}",
            _short(product.line),
            product.instruction,
            "×".join(map(str, product.warps)),
            product.operands,
            product.reason,
        )
        for product in summary.products
    ]
    if rows:
        header = ("    product", "line", "instruction", "warps", "operands", "why not faster")
        echo_table(header, rows)


def _echo_shared(summary: KernelSummary, total_bytes: int) -> None:
    rows = [
        (
            f"    {piece.what}",
            _short(piece.line),
            str(piece.size_bytes),
            str(piece.offset_bytes),
            f"{piece.live[0]}-{piece.live[1]}",
        )
        for piece in summary.shared
    ]
    if rows:
        echo_table(("    shared memory", "line", "bytes", "offset", "ops in use"), rows)
    click.echo(f"  {size_text(total_bytes)} of shared memory for each program")


def _echo_barriers(summary: KernelSummary) -> None:
    rows = _counted(
        ("    barrier", _short(barrier.line), barrier.why) for barrier in summary.barriers
    )
    if rows:
        echo_table(("    barrier", "line", "orders"), rows)
    barriers = count_text(len(summary.barriers), "barrier")
    click.echo(
        f"  {barriers} between ops and {count_text(summary.num_fences, 'fence')} for the "
        "asynchronous units; what an op with scratch waits for is its own"
    )


def _counted(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Equal rows once, with how often there are such: what runs ahead is in the text again."""
    counts = Counter(rows)
    return [
        (f"{row[0]} ({count} times)" if count > 1 else row[0], *row[1:])
        for row, count in counts.items()
    ]


def _short(line: str) -> str:
    """`kernel.py:12` of a line with its whole path."""
    return Path(line).name


def _number(line: str) -> int:
    number = line.rpartition(":")[2]
    return int(number) if number.isdigit() else 0


def _text_of(line: str) -> str:
    return source_line(line.rpartition(":")[0], _number(line)).strip()
