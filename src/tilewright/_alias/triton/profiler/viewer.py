"""`triton.profiler.viewer`: the tree of a session as text, with rates made from its metrics.

Times are the host's. On a GPU a launch returns before its kernel ends, so that a range holds a
kernel's time only where it waits for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_TIME = re.compile(r"(?:avg_|cpu_)?time/(s|ms|us|ns)")
_RATE = re.compile(r"([kmgt]?)(flop|byte)(\d*)/s")


class Range(NamedTuple):
    """A range of a session: its depth in the tree, its name, and its own metrics."""

    depth: int
    name: str
    metrics: Mapping[str, float]


def read(filename: str | Path) -> list[Range]:
    """The ranges of a file that `finalize` wrote, each before those inside it."""
    roots = cast("list[dict[str, object]]", json.loads(Path(filename).read_text(encoding="utf-8")))
    found: list[Range] = []
    pending = [(0, root) for root in reversed(roots)]
    while pending:
        depth, node = pending.pop()
        frame = cast("Mapping[str, str]", node["frame"])
        found.append(Range(depth, frame["name"], cast("Mapping[str, float]", node["metrics"])))
        children = cast("Sequence[dict[str, object]]", node["children"])
        pending += [(depth + 1, child) for child in reversed(children)]
    return found


def parse(
    metrics: Sequence[str],
    filename: str | Path,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> tuple[list[Range], list[str]]:
    """The ranges of a file with the wanted metrics alone, and the names of these.

    `time/ms`, `tflop16/s`, `gbyte/s` and such are computed from a range's time and its counters;
    another name is that of a counter. `include` and `exclude` are patterns that a range's name
    holds or not; `threshold` is the least value of the first metric.
    """
    names = list(metrics)
    ranges = [
        Range(r.depth, r.name, {name: _value(name, r.metrics) for name in names})
        for r in read(filename)
        if (include is None or re.search(include, r.name))
        and not (exclude is not None and re.search(exclude, r.name))
    ]
    if threshold is not None and names:
        ranges = [r for r in ranges if r.metrics[names[0]] >= threshold]
    return ranges, names


def print_tree(
    tree: Sequence[Range],
    metrics: Sequence[str],
    depth: int = 100,
    format: str | None = None,
    print_sorted: bool = False,
) -> None:
    """Print the ranges down to `depth`, with the first metric of each before its name.

    `print_sorted` puts the greatest values of that metric first, without the tree.
    """
    shown = [r for r in tree if r.depth <= depth]
    first = metrics[0] if metrics else None
    if print_sorted and first is not None:
        shown = [r._replace(depth=0) for r in shown]
        shown.sort(key=lambda r: r.metrics[first], reverse=True)
    print("\n".join(_lines(shown, metrics, format)))


def _lines(tree: Sequence[Range], metrics: Sequence[str], format: str | None) -> Iterator[str]:
    yield f"{', '.join(metrics)} (time of the host)"
    width = 30 if format == "function" else None
    for r in tree:
        values = " ".join(f"{r.metrics[name]:.3f}" for name in metrics)
        yield f"{'  ' * r.depth}{values} {r.name[:width]}"


def _value(name: str, metrics: Mapping[str, float]) -> float:
    """A metric of a range; 0 where it has no such counter or took no time."""
    seconds = metrics.get("time (ns)", 0.0) / _UNITS["ns"]
    if time := _TIME.fullmatch(name):
        count = metrics.get("count", 0.0) if name.startswith("avg_") else 1.0
        return seconds * _UNITS[time[1]] / count if count else 0.0
    if rate := _RATE.fullmatch(name):
        prefix, counter, bits = rate.groups()
        counted = metrics.get(f"{counter}s{bits}", 0.0)
        return counted / seconds / _PREFIXES[prefix] if seconds else 0.0
    if "/" in name:
        raise ValueError(
            f"there is no metric {name!r}: ask for time/ms, avg_time/us, tflop16/s, gbyte/s, "
            "or the name of a counter"
        )
    return metrics.get(name, 0.0)
