"""Timelines of simulated programs as files: Perfetto's trace format, or a picture."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from tilewright.interp.simt.timeline import Activity, Timeline
from tilewright.support.errors import InvalidOption

# By definition: a trace counts microseconds, and shows a cycle as a nanosecond.
_MICROSECONDS_PER_CYCLE = 1e-3
_COLORS = {"compute": "#4c78a8", "wait": "#d9d9d9", "product": "#f58518", "load": "#54a24b"}
# Of the picture, in pixels.
_WIDTH, _LABELS, _ROW, _GAP, _HEAD = 1200, 130, 26, 8, 34
_MOST_TICKS = 10
_LEAST_TEXT = 60


def write_timeline(timeline: Timeline, path: Path, title: str) -> None:
    """Write a timeline as its file's suffix says. Raises: InvalidOption for another suffix."""
    if path.suffix == ".json":
        text = json.dumps(to_trace(timeline, title), indent=1) + "\n"
    elif path.suffix == ".svg":
        text = to_svg(timeline, title)
    else:
        raise InvalidOption(
            f"a timeline is no {path.suffix or 'file without a suffix'}",
            argument="--timeline",
            hint="name a file that ends in .svg, or in .json for https://ui.perfetto.dev",
        )
    path.write_text(text, encoding="utf-8")


def tracks_of(timeline: Timeline) -> list[str]:
    """The tracks with anything on them: warp groups, tensor cores, loads."""
    used = {one.track for one in timeline.activities}
    return [name for name in (*timeline.names, "tensor cores", "loads") if name in used]


def to_trace(timeline: Timeline, title: str) -> dict[str, object]:
    """The timeline in Perfetto's (Chrome's) trace format: one thread a track."""
    numbers = {name: number for number, name in enumerate(tracks_of(timeline), 1)}
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": title}}
    ]
    for name, number in numbers.items():
        named: dict[str, object] = {
            "ph": "M",
            "name": "thread_name",
            "pid": 1,
            "tid": number,
            "args": {"name": name},
        }
        events.append(named)
    events += [_event(one, numbers[one.track]) for one in timeline.activities]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _event(one: Activity, number: int) -> dict[str, object]:
    where = "" if one.source is None else f"{one.source.file}:{one.source.line}"
    return {
        "ph": "X",
        "name": one.name,
        "cat": one.kind,
        "pid": 1,
        "tid": number,
        "ts": one.start_cycles * _MICROSECONDS_PER_CYCLE,
        "dur": (one.end_cycles - one.start_cycles) * _MICROSECONDS_PER_CYCLE,
        "args": {"line": where},
    }


def to_svg(timeline: Timeline, title: str) -> str:
    """The timeline as a picture: a row for each track, time in cycles from left to right."""
    tracks = tracks_of(timeline)
    end = max((one.end_cycles for one in timeline.activities), default=1)
    scale = (_WIDTH - _LABELS - 20) / end
    height = _HEAD + len(tracks) * (_ROW + _GAP) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="20">{escape(title)}</text>',
        *_legend(),
    ]
    tops = {name: _HEAD + row * (_ROW + _GAP) for row, name in enumerate(tracks)}
    parts += [f'<text x="8" y="{top + 17}">{escape(name)}</text>' for name, top in tops.items()]
    parts += [_bar(one, tops[one.track], scale) for one in timeline.activities]
    parts.append(f'<text x="8" y="{height - 6}">cycles of a model</text>')
    for cycles in range(0, end + 1, _tick_cycles(end)):
        x = _LABELS + cycles * scale
        parts.append(f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle">{cycles}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _tick_cycles(end: int) -> int:
    """The cycles from tick to tick: 1, 2 or 5 times a power of ten."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if end <= factor * power * _MOST_TICKS:
                return factor * power
        power *= 10


def _legend() -> list[str]:
    parts: list[str] = []
    for number, (kind, color) in enumerate(_COLORS.items()):
        x = _WIDTH - 360 + 90 * number
        parts.append(f'<rect x="{x}" y="10" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{x + 16}" y="20">{kind}</text>')
    return parts


def _bar(one: Activity, top: int, scale: float) -> str:
    x = _LABELS + one.start_cycles * scale
    width = max(0.4, (one.end_cycles - one.start_cycles) * scale)
    title = f"{one.name}: {one.start_cycles} to {one.end_cycles}"
    bar = (
        f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{_ROW}" '
        f'fill="{_COLORS[one.kind]}" stroke="white" stroke-width="0.3">'
        f"<title>{escape(title)}</title></rect>"
    )
    if width < _LEAST_TEXT:
        return bar
    label = one.name.removeprefix("product of ")
    text = label if 6.5 * len(label) < width else ""
    return f'{bar}<text x="{x + 4:.1f}" y="{top + 17}" font-size="10">{escape(text)}</text>'
