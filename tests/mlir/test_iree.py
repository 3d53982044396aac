"""IREE's reader takes the text: `make iree-test` installs its compiler and runs this."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.mlir.texts import text_of
from tilewright.jit import JITFunction

pytestmark = pytest.mark.iree
FLOATS = np.zeros(4096, np.float32)


@tilewright.jit
def chain(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.exp(v * v - 1) / (v + 2), mask=at < n)


@tilewright.jit
def product(a, b, n, B: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, B)
    place = rows[:, None] * B + columns[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for i in range(n):
        acc = tl.dot(tl.load(a + i * B * B + place), tl.load(b + i * B * B + place), acc)
    tl.store(a + place, acc)


@tilewright.jit
def sums(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(v, 0) + tl.max(v, 0))


def iree_opt() -> Path:
    """The iree-opt of the wheel `iree-base-compiler`."""
    spec = importlib.util.find_spec("iree.compiler")
    assert spec is not None and spec.submodule_search_locations, "iree-base-compiler is missing"
    return Path(spec.submodule_search_locations[0]) / "_mlir_libs" / "iree-opt"


def read(text: str) -> subprocess.CompletedProcess[str]:
    """A module that iree-opt parses, verifies, makes canonical and prints."""
    command = [str(iree_opt()), "--canonicalize"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("kernel", "op"),
    [(chain, "linalg.generic"), (product, "linalg.matmul"), (sums, "linalg.generic")],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_iree_reads_a_kernel(kernel: JITFunction, op: str) -> None:
    done = read(text_of(kernel, FLOATS, FLOATS, 20, B=32))
    assert done.returncode == 0, done.stderr
    assert f"func.func @{kernel.__name__}" in done.stdout
    assert op in done.stdout


def test_iree_says_what_is_wrong_with_a_text() -> None:
    text = text_of(product, FLOATS, FLOATS, 20, B=32)
    done = read(text.replace("linalg.matmul ins(", "linalg.matmul outs(", 1))
    assert done.returncode != 0
    assert "error" in done.stderr
