"""Kernels that count cycles count every run of every part, and compute what others compute."""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl
from tilewright.compiler.build import make_request
from tilewright.compiler.stages import schedule_of, stage_text
from tilewright.frontend.devices import DevicePlacement
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.support.dataclass import replace
from tilewright.support.options import CompileOptions
from tilewright.targets.cpu.estimate import (
    MEMORY_BYTES_PER_CYCLE,
    TILE_BYTES_PER_CYCLE,
    Estimate,
)
from tilewright.targets.cpu.report import NestReport
from tilewright.targets.cpu.runtime.cycle_counts import PartCount, collected_counts
from tilewright.tools.collect import describe
from tilewright.tools.measure import counting_cycles

PROGRAMS, TURNS, SIZE = 3, 5, 32


@tilewright.jit
def attend(q, k, out, turns, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    x, total = tl.load(q + places), tl.zeros((N,), tl.float32)
    for turn in range(turns):
        scores = tl.dot(x, tl.trans(tl.load(k + turn * N * N + places)))
        total += tl.sum(tl.exp(scores), axis=1)
    tl.store(out + tl.program_id(0) * N + i, total)


@tilewright.jit
def batch(x, out):
    i = tl.arange(0, 16)
    places = tl.arange(0, 4)[:, None, None] * 256 + i[None, :, None] * 16 + i[None, None, :]
    tile = tl.load(x + places)
    tl.store(out + places, tl.dot(tile, tile))


@tilewright.jit
def count_up(place, values):
    tl.atomic_add(place + tl.load(values + tl.arange(0, 64)), 1)


def arguments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    q, k = (rng.standard_normal((n, SIZE, SIZE), dtype=np.float32) / 8 for n in (1, TURNS))
    return q, k, np.zeros((PROGRAMS, SIZE), np.float32), TURNS


def counted_attend(
    given: tuple[np.ndarray, np.ndarray, np.ndarray, int],
) -> tuple[NestReport, tuple[PartCount, ...]]:
    """The report and the counts of a launch."""
    with collected_counts() as found, counting_cycles():
        attend[(PROGRAMS,)](*given, N=SIZE)
        call = attend.specialize_call(given, {"N": SIZE})
    request = make_request(call.source, call.specialization, call.options)
    report = schedule_of(request).report
    assert isinstance(report, NestReport)
    return report, found[-1].read()


def test_every_run_of_every_part_is_counted(rng: np.random.Generator) -> None:
    report, counts = counted_attend(arguments(rng))
    program, *parts = counts
    assert program.runs == PROGRAMS and len(parts) == len(report.nests) + 1
    for part, count in zip((*report.nests, *report.products), parts, strict=True):
        assert count.runs == PROGRAMS * (1 if part.loop is None else TURNS), part
        assert 0 < count.cycles < program.cycles
    assert sum(count.cycles for count in parts) <= program.cycles


def test_what_counts_computes_the_same(rng: np.random.Generator) -> None:
    q, k, *_ = arguments(rng)
    results = [np.zeros((PROGRAMS, SIZE), np.float32) for _ in range(2)]
    for is_counted, out in enumerate(results):
        attend[(PROGRAMS,)](q, k, out, TURNS, N=SIZE, count_cycles=bool(is_counted))
    np.testing.assert_array_equal(*results)
    assert results[0].any()


def test_each_product_of_a_batch_is_a_run(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 16, 16), dtype=np.float32)
    out = np.zeros_like(x)
    batch[(2,)](x, out, count_cycles=False)
    with collected_counts() as found:
        batch[(2,)](x, out, count_cycles=True)
    np.testing.assert_allclose(out, x @ x, rtol=1e-5, atol=1e-5)
    (counts,) = found
    assert counts.read()[0].runs == 2 and counts.read()[-1].runs == 8


def test_both_forms_of_an_atomic_are_one_part() -> None:
    place, values = np.zeros(4, np.int32), np.arange(64, dtype=np.int32) % 4
    with collected_counts() as found:
        count_up[(3,)](place, values, count_cycles=True)
    np.testing.assert_array_equal(place, 48)
    program, *parts = found[0].read()
    assert program.runs == 3 and [part.runs for part in parts] == [3] * len(parts)


def test_arm_reads_the_counter_that_a_program_may_read(rng: np.random.Generator) -> None:
    call = attend.specialize_call(arguments(rng), {"N": SIZE})
    options = replace(call.options, count_cycles=True)
    for features, counter in ((("+neon",), "steady"), (("+avx2", "+fma"), "cycle")):
        machine = replace(MADE_UP_CPU, features=features)
        where = DevicePlacement("cpu")
        request = make_request(call.source, call.specialization, options, where, machine)
        text = stage_text(request, "llir")
        assert f"call i64 @llvm.read{counter}counter()" in text
        plain = replace(request, options={**request.options, "count_cycles": False})
        assert "counter()" not in stage_text(plain, "llir")


@tilewright.jit
def norm(x, weight, place, out, N: tl.constexpr):
    i = tl.arange(0, N)
    row = tl.load(x + tl.program_id(0) * N + i)
    centered = row - tl.sum(row, axis=0) / N
    scale = tl.load(weight + i) * tl.load(x + tl.load(place + i))
    tl.store(out + tl.program_id(0) * N + i, centered * scale)


def test_what_was_loaded_before_is_near_and_what_is_gathered_moves_lines() -> None:
    types = ("x=*fp32:16", "weight=*fp32:16", "place=*i32:16", "out=*fp32:16", "N=1024")
    where = DevicePlacement("cpu")
    request = make_request(norm.source, describe(norm, types), CompileOptions(), where, MADE_UP_CPU)
    report = schedule_of(request).report
    assert isinstance(report, NestReport)
    mean, stored = report.nests
    assert mean.time == Estimate(round(1024 * 4 / MEMORY_BYTES_PER_CYCLE), "memory")
    # The row again, the weights and the places are near; gathered elements and the result are
    # not, and the result goes through the arena, for it may be where `x` is.
    memory, tiles = 1024 * 64 + 1024 * 4, (3 + 2) * 1024 * 4
    moving = memory / MEMORY_BYTES_PER_CYCLE + tiles / TILE_BYTES_PER_CYCLE
    assert stored.time == Estimate(round(moving), "memory")
