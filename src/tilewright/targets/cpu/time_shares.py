"""What takes the time of a kernel on the CPU: nests and products by their estimates, in percent.

What a loop holds counts as often as the loop runs. Where constants do not say how often, a step
of that loop is a whole of its own: shares in it come to 100 %, and so do those of what is outside.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.report import Loop, NestReport, NestSummary, ProductSummary
from tilewright.targets.cpu.runtime.cycle_counts import PartCount

Part = NestSummary | ProductSummary


@dataclass(frozen=True)
class Share:
    """Equal nests, or one product, and what they take together.

    `numbers` are those of nests, from 1; products have none. `runs` is how often each runs in
    the whole, `cycles` what all runs of all of them take.
    """

    part: Part
    numbers: tuple[int, ...]
    runs: int
    cycles: int
    percent: int


@dataclass(frozen=True)
class Whole:
    """A program, or a step of a `loop` of unknown length, and what takes its time.

    `shares` stand in the order of the report; their percents come to 100 (to 0 if nothing takes
    time). `is_all`: no loop of unknown length is beside it.
    """

    loop: Loop | None
    cycles: int
    shares: tuple[Share, ...]
    is_all: bool


def wholes_of(report: NestReport) -> tuple[Whole, ...]:
    """The program first, then steps of loops in order; what is rare takes no time."""
    found: dict[Loop | None, dict[Part, list[int]]] = {}
    for number, nest in enumerate(report.nests, 1):
        if not nest.is_rare:
            found.setdefault(_open_loop(nest.loop), {}).setdefault(nest, []).append(number)
    for product in report.products:
        found.setdefault(_open_loop(product.loop), {}).setdefault(product, []).append(0)
    order = sorted(found, key=lambda loop: 0 if loop is None else loop.number)
    return tuple(_whole(loop, found[loop], set(found) == {None}) for loop in order)


def _open_loop(loop: Loop | None) -> Loop | None:
    """The innermost loop of unknown length, from `loop` outwards."""
    while loop is not None and loop.trips is not None:
        loop = loop.around
    return loop


def _runs(loop: Loop | None) -> int:
    """How often a step of `loop` runs in a step of the innermost loop of unknown length."""
    if loop is None or loop.trips is None:
        return 1
    return loop.trips * _runs(loop.around)


def _whole(loop: Loop | None, parts: dict[Part, list[int]], is_all: bool) -> Whole:
    runs = [_runs(part.loop) for part in parts]
    cycles = [
        part.time.cycles * len(numbers) * times
        for (part, numbers), times in zip(parts.items(), runs, strict=True)
    ]
    shares = [
        Share(part, tuple(n for n in numbers if n), times, taken, percent)
        for (part, numbers), times, taken, percent in zip(
            parts.items(), runs, cycles, whole_percents(cycles), strict=True
        )
    ]
    return Whole(loop, sum(cycles), tuple(shares), is_all)


def whole_percents(amounts: Sequence[int]) -> list[int]:
    """Amounts as whole percents of their sum, which come to 100 (to 0 if all amounts are 0).

    *Semantics*: each is rounded down, and the largest remainders, the first of equal ones, get 1
    more until the sum is 100.

    *Example*

    >>> whole_percents([1, 1, 1])
    [34, 33, 33]
    """
    total = sum(amounts)
    if not total:
        return [0] * len(amounts)
    percents = [100 * amount // total for amount in amounts]
    order = sorted(range(len(amounts)), key=lambda i: -(100 * amounts[i] % total))
    for i in order[: 100 - sum(percents)]:
        percents[i] += 1
    return percents


@dataclass(frozen=True)
class MeasuredShare:
    """Equal nests, or one product, and what they took together in all programs.

    `percent` is what they were estimated to take of what all parts take, run as often as they ran;
    `measured_percent` is of what the programs took. `runs` are those of all of them.
    """

    part: Part
    numbers: tuple[int, ...]
    runs: int
    percent: int
    measured_cycles: int
    measured_percent: int


@dataclass(frozen=True)
class Measured:
    """What the programs of all launches took: of each part that ran, and `elsewhere`, in percent.

    `cycles` are those of one program, on average.
    """

    num_programs: int
    cycles: int
    shares: tuple[MeasuredShare, ...]
    elsewhere_percent: int


def measured(report: NestReport, counts: Sequence[PartCount]) -> Measured:
    """The shares of what was counted, also of what is rare; a loop counts as it ran."""
    program, *rest = counts
    rest += [PartCount(0, 0)] * (len(report.nests) + len(report.products) - len(rest))
    parts: dict[Part, list[tuple[int, PartCount]]] = {}
    for number, part in enumerate((*report.nests, *report.products)):
        if rest[number].runs:
            in_report = number + 1 if number < len(report.nests) else 0
            parts.setdefault(part, []).append((in_report, rest[number]))
    runs = [sum(count.runs for _, count in found) for found in parts.values()]
    taken = [sum(count.cycles for _, count in found) for found in parts.values()]
    expected = [_run_cycles(part, times) for part, times in zip(parts, runs, strict=True)]
    *percents, elsewhere = whole_percents([*taken, max(program.cycles - sum(taken), 0)])
    shares = tuple(
        MeasuredShare(part, tuple(n for n, _ in found if n), *numbers)
        for (part, found), *numbers in zip(
            parts.items(), runs, whole_percents(expected), taken, percents, strict=True
        )
    )
    cycles = round(program.cycles / max(program.runs, 1))
    return Measured(program.runs, cycles, shares, elsewhere)


def _run_cycles(part: Part, runs: int) -> int:
    """What so many runs are estimated to take; each product of a batch is a run."""
    count = part.count if isinstance(part, ProductSummary) else 1
    return round(part.time.cycles * runs / max(count, 1))
