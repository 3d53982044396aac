"""`kernel.simulate` and `tilewright simulate`: a GPU's threads on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.interp.simt.faults import GlobalRace
from tilewright.support.errors import InvalidOption, OutOfBoundsAccess
from tilewright.tools.simulate import line_accesses

SCRIPT = """
import numpy as np
import tilewright
import tilewright.language as tl
from helpers_of_script import scaled


@tilewright.jit
def strided(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, scaled(x, i), mask=i < n)


def main():
    x, out = np.arange(300 * 9, dtype=np.float32), np.zeros(300, np.float32)
    strided[(3,)](x, out, 300, BLOCK=128)
    print("sum", int(out.sum()))
"""
HELPER = """
import tilewright
import tilewright.language as tl


@tilewright.jit
def scaled(x, i):
    return tl.load(x + i * 9, mask=i < LIMIT) * 2
"""


@tilewright.jit
def row_sum(x, out, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    values = tl.load(x + row * n + c, mask=c < n, other=0.0)
    tl.store(out + row, tl.sum(values, 0))


@tilewright.jit
def product(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_arrays_hold_what_a_gpu_would_write() -> None:
    x = np.random.default_rng(1).integers(-9, 9, (5, 1000)).astype(np.float32)
    out = np.zeros(5, np.float32)
    simulation = row_sum.simulate[(5,)](x, out, 1000, BLOCK=1024, num_warps=8)
    np.testing.assert_array_equal(out, x.sum(1))
    assert (simulation.kernel, simulation.machine, simulation.grid) == (
        "row_sum", "sm_90a", (5, 1, 1)
    )  # fmt: skip
    assert simulation.report.barriers > 0


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_a_seed_changes_the_order_of_warps_and_no_result(seed: int | None) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    product.simulate[(1,)](a, b, c, N=64, seed=seed)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_an_access_out_of_bounds_names_the_line_of_the_kernel() -> None:
    x, out = np.zeros((2, 100), np.float32), np.zeros(1, np.float32)
    with pytest.raises(OutOfBoundsAccess) as caught:
        row_sum.simulate[(2,)](x, out, 100, BLOCK=128)
    span = caught.value.span
    assert span is not None and span.file == __file__
    assert "tl.store(out + row, tl.sum(values, 0))" in str(caught.value)


@tilewright.jit
def halves(x_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out_ptr + at // 2, tl.load(x_ptr + at))


def test_elements_of_one_store_that_meet_in_a_place_race_unless_they_are_equal() -> None:
    out = np.zeros(128, np.float32)
    halves.simulate[(1,)](np.ones(128, np.float32), out, SIZE=128)
    assert (out[:64] == 1).all()
    with pytest.raises(GlobalRace, match=r"writes a different value in one instruction") as fault:
        halves.simulate[(1,)](np.arange(128, dtype=np.float32), out, SIZE=128)
    assert "of out_ptr, where" in str(fault.value)
    assert "tl.store(out_ptr + at // 2" in str(fault.value)


def test_accesses_are_counted_by_line() -> None:
    x, out = np.zeros((2, 1024), np.float32), np.zeros(2, np.float32)
    simulation = row_sum.simulate[(2,)](x, out, 1000, BLOCK=1024)
    lines = [line for line in line_accesses(simulation.report) if line.space == "global"]
    assert [line.kind for line in lines] == ["load", "store"]
    assert all(line.span is not None and line.span.file == __file__ for line in lines)
    assert lines[0].efficiency == 1.0


def test_an_unknown_machine_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidOption, match="`machine` is 'sm_12'") as caught:
        row_sum.simulate[(1,)](np.zeros(4, np.float32), np.zeros(1, np.float32), 4, BLOCK=4,
                               machine="sm_12")  # fmt: skip
    assert "sm_90a" in str(caught.value)


def write_script(folder: Path, limit: str) -> Path:
    (folder / "helpers_of_script.py").write_text(HELPER.replace("LIMIT", limit))
    script = folder / "strided.py"
    script.write_text(SCRIPT)
    return script


def run_command(script: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright", "simulate", str(script), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_lists_slow_accesses_in_the_lines_of_the_files(tmp_path: Path) -> None:
    done = run_command(write_script(tmp_path, "300"), "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert "strided on sm_90a, 3×1×1 programs" in done.stdout
    assert "no fault" in done.stdout
    assert "helpers_of_script.py:8  return tl.load(x + i * 9, mask=i < 300) * 2" in done.stdout
    assert "load global" in done.stdout and "store global" not in done.stdout
    assert f"sum {int(np.arange(0, 2700, 9).sum() * 2)}" in done.stderr


def test_the_command_ends_with_the_fault_at_its_line(tmp_path: Path) -> None:
    done = run_command(write_script(tmp_path, "301"))
    assert done.returncode == 1
    assert "OutOfBoundsAccess" in done.stderr
    assert "helpers_of_script.py:8" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_launches_nothing_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "empty.py"
    script.write_text("x = 1\n")
    done = run_command(script)
    assert done.returncode == 1 and "launches no kernel" in done.stderr


@tilewright.jit
def store_number(out, number):
    tl.store(out, number)


def test_a_number_beyond_fp32_is_infinite_without_a_word() -> None:
    for run in (store_number[(1,)], store_number.interpret[(1,)], store_number.simulate[(1,)]):
        out = np.zeros(1, np.float32)
        run(out, 1e300)
        assert out[0] == np.inf
