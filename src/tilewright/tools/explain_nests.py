"""`tilewright explain` on the CPU: what takes the time, then each loop nest and product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path

import click

from tilewright.support.source import source_line
from tilewright.targets.cpu.report import Access, NestReport, NestSummary, ProductSummary
from tilewright.targets.cpu.runtime.cycle_counts import PartCount
from tilewright.targets.cpu.time_shares import (
    Measured,
    MeasuredShare,
    Part,
    Share,
    Whole,
    measured,
    wholes_of,
)
from tilewright.tools.show import count_text, echo_table, size_text

_SLOW = frozenset(("gather", "strided", "scalar"))
_Places = dict[Part, str]
"""What is said of the time of each part, beside its line."""


def explain_nests(report: NestReport, counts: Sequence[PartCount] = ()) -> None:
    """Print the report on one kernel: what takes the time first, or took it if it was counted."""
    wholes = wholes_of(report)
    if counts and counts[0].runs:
        _explain_measured(measured(report, counts))
    else:
        for whole in wholes:
            _explain_whole(whole)
    places = {share.part: _place_text(share, whole) for whole in wholes for share in whole.shares}
    for nest, numbers in _equal_nests(report.nests).items():
        _explain_nest(numbers, nest, places)
    for product in dict.fromkeys(report.products):
        _explain_product(product, places)
    total_bytes = sum(nest.bytes for nest in report.nests)
    total_flops = sum(nest.flops for nest in report.nests)
    click.echo(
        f"  {len(report.nests)} loop nests · {size_text(total_bytes)} of memory and "
        f"{total_flops} operations, each nest counted once · arena {size_text(report.arena_bytes)}"
    )
    for remark in dict.fromkeys(report.remarks):
        click.echo(f"  remark: {remark}")


def _explain_whole(whole: Whole) -> None:
    """The parts of a program or of a step, what takes the most time first."""
    click.echo(f"  {_whole_text(whole)} takes about {_cycles_text(whole.cycles)} by estimate:")
    shown = sorted(whole.shares, key=lambda share: -share.cycles)
    _echo_rows(
        (f"{share.percent:3d} %", _name(share), _bound_text(share.part), *_first_line(share.part))
        for share in shown
    )


def _explain_measured(found: Measured) -> None:
    """The parts of a program as they were measured, what took the most time first."""
    programs = count_text(found.num_programs, "program")
    click.echo(f"  a program took {_cycles_text(found.cycles)}, on average of {programs}:")
    rows = [("measured", "estimated", "", "bound by", "line", "")]
    for share in sorted(found.shares, key=lambda share: -share.measured_cycles):
        percents = f"{share.measured_percent:6d} %", f"{share.percent:7d} %"
        name = _part_name(share.part, share.numbers) + _runs_text(share, found)
        rows.append((*percents, name, _bound_text(share.part), *_first_line(share.part)))
    rows.append((f"{found.elsewhere_percent:6d} %", "", "elsewhere", "", "", ""))
    _echo_rows(rows)


def _runs_text(share: MeasuredShare, found: Measured) -> str:
    """How often a part ran in a program, where that is not once."""
    each = share.runs / found.num_programs / max(len(share.numbers), 1)
    return "" if each == 1 else f", {each:.4g} times"


def _echo_rows(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows in columns; the last one may be as long as it likes."""
    kept = list(rows)
    widths = [max(map(len, column)) for column in zip(*kept, strict=True)][:-1]
    for row in kept:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo(f"    {'  '.join((*cells, row[-1]))}".rstrip())


def _whole_text(whole: Whole) -> str:
    if whole.loop is not None:
        return f"a step of the loop at {_short(whole.loop.line)}"
    return "a program" if whole.is_all else "what is outside of loops of unknown length"


def _cycles_text(cycles: int) -> str:
    """A number of cycles with three digits of it.

    *Example*

    >>> _cycles_text(940), _cycles_text(12_345_678)
    ('940 cycles', '12.3 million cycles')
    """
    for size, word in ((1_000_000_000, " billion"), (1_000_000, " million"), (1000, " thousand")):
        if cycles >= size:
            return f"{cycles / size:.3g}{word} cycles"
    return f"{cycles} cycles"


def _name(share: Share) -> str:
    """What a share is of, with how often it runs in the whole."""
    name = _part_name(share.part, share.numbers)
    return name if share.runs == 1 else f"{name}, {share.runs} times"


def _part_name(part: Part, numbers: Sequence[int]) -> str:
    if isinstance(part, ProductSummary):
        return f"product {_shape_text(part)}"
    return _numbers_text(numbers, "")


def _shape_text(product: ProductSummary) -> str:
    shape = "x".join(map(str, product.shape))
    return shape if product.count == 1 else f"{product.count} of {shape}"


def _bound_text(part: Part) -> str:
    """What most of the time of a part is spent on."""
    bound = part.time.bound
    if bound == "arithmetic" and isinstance(part, ProductSummary):
        return part.unit
    return {"tiles": "tiles in the arena"}.get(bound, bound)


def _first_line(part: Part) -> tuple[str, str]:
    """The first line of a part and its text."""
    lines = (part.line,) if isinstance(part, ProductSummary) else part.lines
    if not lines:
        return "", ""
    return _short(lines[0]), _text_of(lines[0])


def _place_text(share: Share, whole: Whole) -> str:
    """What is said of a share where its part is explained."""
    together = " together" if len(share.numbers) > 1 else ""
    runs = "" if share.runs == 1 else f", in {share.runs} runs"
    is_packed = isinstance(share.part, ProductSummary) and share.part.packed
    packing = " with its packing" if is_packed else ""
    return (
        f"about {share.percent} % of {_whole_text(whole)}{together}{packing}{runs} · "
        f"bound by {_bound_text(share.part)}"
    )


def _equal_nests(nests: Sequence[NestSummary]) -> dict[NestSummary, list[int]]:
    """The nests that differ in nothing that is said of them, with their numbers from 1."""
    found: dict[NestSummary, list[int]] = {}
    for number, nest in enumerate(nests, 1):
        found.setdefault(nest, []).append(number)
    return found


def _numbers_text(numbers: Sequence[int], each: str = ", each") -> str:
    """`nest 3`, or `nests 1, 4–7, each`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [str(a) if a == b else f"{a}–{b}" for a, b in spans]
    return f"nest {texts[0]}" if len(numbers) == 1 else f"nests {', '.join(texts)}{each}"


def _explain_nest(numbers: Sequence[int], nest: NestSummary, places: _Places) -> None:
    bounds = " × ".join(str(bound) for bound in nest.bounds) or "1"
    click.echo(
        f"  {_numbers_text(numbers)}: {bounds} elements · {_vector_text(nest)} · "
        f"{size_text(nest.bytes)} · {nest.flops} operations · "
        f"{', '.join(dict.fromkeys(nest.fused))}"
    )
    click.echo(f"    {places.get(nest, 'runs only where a fast path does not')}")
    for line in nest.lines:
        click.echo(f"    {_short(line)}  {_text_of(line)}")
    if nest.accesses:
        rows = [_access_row(access) for access in nest.accesses]
        echo_table(("    access", "line", "kind", "why"), rows)
    for remark in dict.fromkeys(nest.remarks):
        click.echo(f"    remark: {remark}")


def _explain_product(product: ProductSummary, places: _Places) -> None:
    dtypes = " by ".join(dict.fromkeys(product.dtypes))
    packed = f"packs {product.packed}" if product.packed else "packs nothing"
    number, columns = product.panels
    panels = f"{number} panel{'s' * (number > 1)} of {columns} columns"
    work = f"{2 * product.count * prod(product.shape)} operations"
    shape = _shape_text(product)
    click.echo(f"  product {shape} of {dtypes}: {product.unit} · {panels} · {packed} · {work}")
    click.echo(f"    {places[product]}")
    click.echo(f"    {_short(product.line)}  {_text_of(product.line)}")
    if product.why_not_faster:
        click.echo(f"    not on AMX: {product.why_not_faster}")
    if product.in_place:
        click.echo(
            f"    reads {product.in_place} in place where no mask hides a part in the middle"
        )
    if product.is_kept:
        click.echo("    keeps B packed where the programs that follow read the same of it")
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
