"""The package of "Add an op" does what it says: on every machine, in workers, from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import ROOT, write_files

PAGE = ROOT / "docs" / "how-to" / "add-an-op.md"
HEAD = """
import numpy as np
import tilewright
import tilewright.language as tl
import tile_extras
from tile_extras import running_maximum, softplus

rng = np.random.default_rng({seed})
"""
ON_EVERY_MACHINE = """
@tilewright.jit
def planes(x_ptr, out_ptr, a: tl.constexpr, b: tl.constexpr, c: tl.constexpr, axis: tl.constexpr):
    i, j, k = tl.arange(0, a), tl.arange(0, b), tl.arange(0, c)
    at = (i[:, None, None] * b + j[None, :, None]) * c + k[None, None, :]
    base = tl.program_id(0) * (a * b * c)
    x = tl.load(x_ptr + base + at)
    for _ in range(2):
        x = running_maximum(x * 0.5, axis)
    tl.store(out_ptr + base + at, x)


def planes_wanted(x, axis):
    for _ in range(2):
        x = np.maximum.accumulate(x * np.float32(0.5), axis=axis + 1)
    return x


@tilewright.jit
def line(x_ptr, out_ptr, n, size: tl.constexpr):
    at = tl.arange(0, size)
    x = tl.load(x_ptr + at, mask=at < n, other=-float("inf"))
    tl.store(out_ptr + at, running_maximum(softplus(x)), mask=at < n)


shapes = [(1, 1, 8), (2, 8, 16), (16, 2, 4), (1, 64, 8), (256, 2, 1), (4, 4, 64)]
for shape in shapes:
    for axis in range(3):
        x = rng.standard_normal((3, *shape)).astype(np.float32)
        x.ravel()[rng.integers(0, x.size, 2)] = np.nan
        for run in (planes.interpret, planes, planes.simulate):
            out = np.zeros_like(x)
            run[(3,)](x, out, *shape, axis)
            np.testing.assert_array_equal(out, planes_wanted(x, axis), err_msg=f"{shape} {axis}")
for n, size in ((1, 1), (17, 32), (1000, 1024)):
    x = (rng.standard_normal(n) * 40).astype(np.float32)
    x[0] = -200.0
    for run in (line.interpret, line, line.simulate):
        out = np.zeros_like(x)
        run[(1,)](x, out, n, size)
        wanted = np.maximum.accumulate(np.logaddexp(x.astype(np.float64), 0))
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-30)
print("the same")
"""
IN_CONTROL_FLOW = """
@tilewright.jit
def softly(a, b):
    return a + softplus(b)


@tilewright.jit
def kernel(x_ptr, out_ptr, n, size: tl.constexpr):
    at = tl.arange(0, size)
    m = tl.load(x_ptr + at[:, None] * size + at[None, :])
    carried = tl.zeros((size,), tl.float32)
    for k in range(n):
        carried = running_maximum(carried + tl.sum(m, 0))
        if k == 1:
            carried = running_maximum(carried * 0.5) - 1.0
    t = tl.load(x_ptr)
    while t < 3.0:
        t = softplus(t) + 0.5
    tl.store(out_ptr + at, carried + t)
    tl.store(out_ptr + size + at, tl.reduce(running_maximum(m, 1), 1, softly))
    # What is stored here is read by the op before, and by a load after.
    line = tl.load(x_ptr + at)
    tl.store(x_ptr + at, running_maximum(line) + 1.0)
    back = tl.load(x_ptr + (size - 1 - at))
    tl.store(x_ptr + at, running_maximum(back) + running_maximum(line))


for size in (16, 64):
    start = rng.integers(-8, 8, (size, size)).astype(np.float32)
    found = []
    for run in (kernel.interpret, kernel, kernel.simulate):
        x, out = start.copy(), np.zeros(2 * size, np.float32)
        run[(1,)](x, out, 3, size)
        found.append(np.concatenate([x.ravel(), out]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-5)
print("the same")
"""
ELSEWHERE = """
import sys

from tilewright.runtime.isolation import isolated_compiles


@tilewright.jit
def maxima(x_ptr, out_ptr, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(out_ptr + at, tile_extras.running_maximum(tl.load(x_ptr + at)))


x = rng.standard_normal(64).astype(np.float32)
out = np.zeros_like(x)
with isolated_compiles():
    maxima[(1,)](x, out, 64)
np.testing.assert_array_equal(out, np.maximum.accumulate(x))
print(tilewright.compile_statistics(), "with", "xdsl" in sys.modules)
"""
WRONG = """
@tilewright.jit
def halves(x_ptr):
    at = tl.arange(0, 16)
    tl.store(x_ptr + at, softplus(tl.load(x_ptr + at)))


try:
    halves.interpret[(1,)](np.zeros(16, np.float16))
except tilewright.CompileError as error:
    print(error)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with the package of the page, which is not Tilewright's own."""
    written = write_files(PAGE.read_text(encoding="utf-8"), tmp_path)
    assert {path.parent.name for path in written} == {"tile_extras"}
    return tmp_path


def output_of(folder: Path, program: str, seed: int = 0) -> str:
    """What a program beside the package prints."""
    path = folder / "program.py"
    path.write_text(HEAD.format(seed=seed) + program, encoding="utf-8")
    paths = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=folder.parent,
        env={**os.environ, "PYTHONPATH": paths, "TILEWRIGHT_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_ops_of_the_page_agree_in_interpreter_cpu_and_simulator(
    package: Path, pytestconfig: pytest.Config
) -> None:
    seed = pytestconfig.getoption("--seed")
    assert output_of(package, ON_EVERY_MACHINE, seed or 0) == "the same\n"


def test_ops_of_the_page_work_in_loops_branches_and_overlapping_memory(package: Path) -> None:
    assert output_of(package, IN_CONTROL_FLOW) == "the same\n"


def test_a_worker_has_the_package_and_the_cache_knows_its_sources(package: Path) -> None:
    first = output_of(package, ELSEWHERE)
    assert "compiled=1" in first and "loaded_from_disk=0" in first
    second = output_of(package, ELSEWHERE)
    assert "compiled=0" in second and "loaded_from_disk=1" in second
    assert second.endswith("with False\n"), "a cache hit loads no compiler"
    rules = package / "tile_extras" / "cpu.py"
    rules.write_text(rules.read_text() + "\n# another version\n")
    assert "compiled=1" in output_of(package, ELSEWHERE)


def test_the_package_points_at_a_wrong_argument(package: Path) -> None:
    told = output_of(package, WRONG)
    assert "softplus(): `x` is fp16, not fp32" in told
    assert "        " + " " * len("tl.store(x_ptr + at, softplus(") + "^" in told


def test_a_launch_imports_the_package_and_not_its_parts(package: Path) -> None:
    program = "import sys\nprint([m for m in sys.modules if 'xdsl' in m or 'tile_extras.' in m])\n"
    assert output_of(package, program) == "[]\n"
