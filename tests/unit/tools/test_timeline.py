"""Timelines of simulated programs: what overlaps in the program overlaps in the picture."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from tests.unit.targets.nvidia.test_enumerate_schedules import operands, product
from tilewright.compiler.simulated import collected_simulations
from tilewright.interp.simt.timeline import Activity, Timeline
from tilewright.support.errors import InvalidOption
from tilewright.tools.simulate import simulate
from tilewright.tools.timeline import to_svg, to_trace, tracks_of, write_timeline

PROGRAM = """
import numpy as np
import tilewright
import tilewright.language as tl

@tilewright.jit
def total(x, out, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        acc += tl.load(x + start + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), acc)

for n in (256, 512):
    total[(1,)](np.ones(512, np.float32), np.zeros(128, np.float32), n, BLOCK=128)
"""
SIZES = {"M": 128, "N": 64, "K": 64}


def timeline_of(**options: object) -> Timeline:
    a, b = operands(512)
    c = np.zeros((128, 64), np.float32)
    with collected_simulations(draws=True) as simulations:
        product.simulate[(1,)](a, b, c, 512, **SIZES, **options)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    (simulation,) = simulations
    assert simulation.timeline is not None
    return simulation.timeline


def end_of(timeline: Timeline) -> int:
    return max(one.end_cycles for one in timeline.activities)


def busy_cycles(timeline: Timeline, kind: str) -> int:
    return sum(o.end_cycles - o.start_cycles for o in timeline.activities if o.kind == kind)


def test_a_track_does_one_thing_at_a_time() -> None:
    timeline = timeline_of(num_consumer_groups=2)
    assert tracks_of(timeline) == ["load", "math 0", "math 1", "tensor cores", "loads"]
    for track in tracks_of(timeline):
        mine = sorted((o for o in timeline.activities if o.track == track), key=_start)
        assert all(a.end_cycles <= b.start_cycles for a, b in itertools.pairwise(mine)), track


def _start(one: Activity) -> int:
    return one.start_cycles


def test_loads_that_run_ahead_hide_behind_products() -> None:
    none, ahead = timeline_of(num_stages=1), timeline_of(num_stages=4)
    assert end_of(ahead) < 0.6 * end_of(none)
    assert busy_cycles(ahead, "product") == busy_cycles(none, "product") == 8 * 4 * 2 * 32
    assert busy_cycles(ahead, "load") == busy_cycles(none, "load") == 512 * 192 * 2 // 64


def test_two_groups_share_the_tensor_cores() -> None:
    rows = "roles load | math x2 split m; ring ring0 tiles load#0 load#1 slots 4"
    timeline = timeline_of(schedule=rows)
    first, second = (
        [o for o in timeline.activities if o.name == f"product of math {k}"] for k in (0, 1)
    )
    assert first[0].start_cycles < second[0].start_cycles < first[-1].end_cycles
    assert {o.name for o in timeline.activities if o.kind == "wait"} >= {
        "waits: ring ring0",
        "waits: products",
    }


def test_the_threads_own_copies_are_on_the_track_of_loads() -> None:
    timeline = timeline_of(num_stages=3, descriptors="pointers")
    loads = [o for o in timeline.activities if o.kind == "load"]
    assert loads and all(o.name.startswith("cp.async") for o in loads)
    assert "waits: copies" in {o.name for o in timeline.activities}


def test_the_trace_is_what_perfetto_reads() -> None:
    timeline = timeline_of(num_stages=2)
    trace = json.loads(json.dumps(to_trace(timeline, "product")))
    events = trace["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert names == tracks_of(timeline)
    shown = [e for e in events if e["ph"] == "X"]
    assert len(shown) == len(timeline.activities)
    assert all(e["dur"] > 0 and e["tid"] <= len(names) for e in shown)
    assert max(e["ts"] + e["dur"] for e in shown) == pytest.approx(end_of(timeline) / 1000)


def test_the_picture_has_a_bar_for_each_activity() -> None:
    timeline = timeline_of(num_stages=2)
    root = ElementTree.fromstring(to_svg(timeline, "a < b"))
    bars = [e for e in root.iter() if e.tag.endswith("rect") and len(e)]
    assert len(bars) == len(timeline.activities)


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"a timeline is no \.png"):
        write_timeline(timeline_of(num_stages=1), tmp_path / "x.png", "product")


def test_the_command_writes_a_file_for_each_launch(tmp_path: Path) -> None:
    program = tmp_path / "twice.py"
    program.write_text(PROGRAM)
    out = tmp_path / "t.json"
    done = CliRunner().invoke(simulate, [str(program), "--timeline", str(out)])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.glob("t*.json")) == ["t-1.json", "t.json"]


@pytest.mark.parametrize(("end", "last"), [(1, "1"), (9, "9"), (6741, "6000"), (10192, "10000")])
def test_ticks_are_round_numbers_of_cycles(end: int, last: str) -> None:
    timeline = Timeline()
    timeline.activities.append(Activity("loads", "load, line 1", "load", 0, end))
    root = ElementTree.fromstring(to_svg(timeline, "one load"))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-1] == last and "0" in texts and "cycles of a model" in texts
