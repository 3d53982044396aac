"""`tilewright explain`: what the schedule made of a kernel, in the kernel's own lines."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import click

from tilewright.compiler.request import CompileRequest
from tilewright.compiler.stages import schedule_of
from tilewright.support.source import source_line
from tilewright.targets.cpu.report import (
    Access,
    Loop,
    NestReport,
    NestSummary,
    ProductSummary,
)
from tilewright.targets.mlir.decide_access_forms import AccessForms
from tilewright.tools.explain_gpu import explain_gpu
from tilewright.tools.show import echo_table, size_text, title

_SLOW = frozenset(("gather", "strided", "scalar"))


def explain(request: CompileRequest) -> None:
    """Print the report on one kernel."""
    scheduled = schedule_of(request)
    click.secho(title(request), bold=True)
    if isinstance(scheduled.report, NestReport):
        _explain_nests(scheduled.report)
    elif isinstance(scheduled.report, AccessForms):
        _explain_accesses(scheduled.report)
    else:
        explain_gpu(request, scheduled)


def _explain_accesses(report: AccessForms) -> None:
    """What the MLIR target made of loads and stores."""
    click.echo(
        f"  {report.num_views} loads and stores of tiles are views of memory, "
        f"{len(report.remarks)} go element by element"
    )
    for remark in dict.fromkeys(report.remarks):
        click.echo(f"  remark: {remark}")


def _explain_nests(report: NestReport) -> None:
    shares = _shares(report)
    for nest, numbers in _equal_nests(report.nests).items():
        _explain_nest(numbers, nest, shares)
    for product in dict.fromkeys(report.products):
        _explain_product(product, shares)
    total_bytes = sum(nest.bytes for nest in report.nests)
    total_flops = sum(nest.flops for nest in report.nests)
    click.echo(
        f"  {len(report.nests)} loop nests · {size_text(total_bytes)} of memory and "
        f"{total_flops} operations, each nest counted once · arena {size_text(report.arena_bytes)}"
    )
    for remark in dict.fromkeys(report.remarks):
        click.echo(f"  remark: {remark}")


Part = NestSummary | ProductSummary


def _shares(report: NestReport) -> dict[Part, str]:
    """What part of the time of its surroundings each nest and product takes, by estimate."""
    parts: list[Part] = [*report.products, *(nest for nest in report.nests if not nest.is_rare)]
    totals: dict[Loop | None, int] = {}
    for part in parts:
        totals[part.loop] = totals.get(part.loop, 0) + part.cycles
    return {part: _share_text(part, totals[part.loop]) for part in parts}


def _share_text(part: Part, total: int) -> str:
    place = "the time outside of loops"
    if part.loop is not None:
        place = f"a step of the loop at {_short(part.loop.line)}"
    return f"about {100 * part.cycles / max(total, 1):.0f} % of {place}"


def _equal_nests(nests: Sequence[NestSummary]) -> dict[NestSummary, list[int]]:
    """The nests that differ in nothing that is said of them, with their numbers from 1."""
    found: dict[NestSummary, list[int]] = {}
    for number, nest in enumerate(nests, 1):
        found.setdefault(nest, []).append(number)
    return found


def _numbers_text(numbers: Sequence[int]) -> str:
    """`nest 3`, or `nests 1, 4–7, each`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [str(a) if a == b else f"{a}–{b}" for a, b in spans]
    return f"nest {texts[0]}" if len(numbers) == 1 else f"nests {', '.join(texts)}, each"


def _explain_nest(numbers: Sequence[int], nest: NestSummary, shares: dict[Part, str]) -> None:
    bounds = " × ".join(str(bound) for bound in nest.bounds) or "1"
    click.echo(
        f"  {_numbers_text(numbers)}: {bounds} elements · {_vector_text(nest)} · "
        f"{size_text(nest.bytes)} · {nest.flops} operations · "
        f"{', '.join(dict.fromkeys(nest.fused))}"
    )
    click.echo(f"    {shares.get(nest, 'runs only where a fast path does not')}")
    for line in nest.lines:
        click.echo(f"    {_short(line)}  {_text_of(line)}")
    if nest.accesses:
        rows = [_access_row(access) for access in nest.accesses]
        echo_table(("    access", "line", "kind", "why"), rows)
    for remark in dict.fromkeys(nest.remarks):
        click.echo(f"    remark: {remark}")


def _explain_product(product: ProductSummary, shares: dict[Part, str]) -> None:
    dtypes = " by ".join(dict.fromkeys(product.dtypes))
    shape = "x".join(map(str, product.shape))
    packed = f"packs {product.packed}" if product.packed else "packs nothing"
    number, columns = product.panels
    panels = f"{number} panel{'s' * (number > 1)} of {columns} columns"
    work = f"{2 * prod(product.shape)} operations"
    click.echo(f"  product {shape} of {dtypes}: {product.unit} · {panels} · {packed} · {work}")
    with_packing = " with its packing" if product.packed else ""
    click.echo(f"    {shares[product]}{with_packing}")
    click.echo(f"    {_short(product.line)}  {_text_of(product.line)}")
    if product.why_not_faster:
        click.echo(f"    not on AMX: {product.why_not_faster}")
    if product.in_place:
        click.echo(
            f"    reads {product.in_place} in place where no mask hides a part in the middle"
        )
    if product.is_stored:
        click.echo("    the last step stores the result, if it is apart from what the step reads")


def _vector_text(nest: NestSummary) -> str:
    if nest.vector <= 1 or nest.lane_dim is None:
        return "not vectorized"
    return f"vectors of {nest.vector} along dimension {nest.lane_dim}"


def _access_row(access: Access) -> tuple[str, str, str, str]:
    why = access.why or ("its addresses are not known to be adjacent" * (access.kind in _SLOW))
    return f"    {access.operation}", _short(access.line), access.kind, why


def _short(line: str) -> str:
    """`kernel.py:12` of a line with its whole path."""
    return Path(line).name


def _text_of(line: str) -> str:
    file, _, number = line.rpartition(":")
    return source_line(file, int(number)).strip() if number.isdigit() else ""
