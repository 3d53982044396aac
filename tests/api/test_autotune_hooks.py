"""Hooks of configurations: they run before anything looks at the arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.api.fake_kernel import make_fake
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.errors import NotPowerOfTwo, ShapeMismatch, UnexpectedArgument


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def set_blocks(named: dict[str, object]) -> None:
    for name in ("source", "target"):
        named[name].block_shape = [named["ROWS"], named["COLUMNS"]]


BLOCKS = [
    tilewright.Config({"ROWS": rows, "COLUMNS": columns}, num_stages=2, pre_hook=set_blocks)
    for rows, columns in ((8, 16), (16, 16), (4, 64))
]


def make_kernel() -> tilewright.JITFunction:
    @tilewright.jit
    def double(source, target, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
        target.store([row, column], 2 * source.load([row, column]))

    return double


def grid(meta: dict[str, int]) -> tuple[int, int]:
    return (tilewright.cdiv(meta["n"], meta["ROWS"]), tilewright.cdiv(64, meta["COLUMNS"]))


def launch(tuner: object, n: int, placeholder: list[int]) -> None:
    x = np.arange(n * 64, dtype=np.float32).reshape(n, 64)
    out = np.zeros_like(x)
    descriptors = [TensorDescriptor.from_tensor(a, placeholder) for a in (x, out)]
    tuner[grid](*descriptors, n)
    assert (out == 2 * x).all()


@pytest.mark.parametrize("configs", [BLOCKS, BLOCKS[:1]], ids=["tuned", "single"])
@pytest.mark.parametrize("placeholder", [[1, 1], [3, 5]], ids=str)
def test_a_placeholder_block_is_set_by_the_hook(
    configs: list[tilewright.Config], placeholder: list[int]
) -> None:
    tuner = tilewright.autotune(configs, key=["n"], warmup=0, rep=2)(make_kernel())
    for n in (17, 40, 17):
        launch(tuner, n, placeholder)
    # The next process finds every kernel on disk.
    again = tilewright.autotune(configs, key=["n"], warmup=0, rep=2)(make_kernel())
    launch(again, 17, placeholder)


def test_a_warm_up_runs_the_hooks() -> None:
    tuner = tilewright.autotune(BLOCKS, key=["n"])(make_kernel())
    x = np.zeros((17, 64), np.float32)
    kernels = tuner.warmup(*(TensorDescriptor.from_tensor(x, [1, 1]) for _ in range(2)), 17)
    assert len({kernel.hash for kernel in kernels}) == 3


def test_a_placeholder_that_stays_is_refused_at_the_launch() -> None:
    x = np.zeros((16, 64), np.float32)
    made = TensorDescriptor.from_tensor(x, [1, 1])
    with pytest.raises(ShapeMismatch, match="last dimension has 4 bytes"):
        make_kernel()[(1, 1)](made, made, 16, ROWS=1, COLUMNS=1)
    made.block_shape = [3, 16]
    with pytest.raises(NotPowerOfTwo, match="3 in `block_shape`"):
        make_kernel()[(1, 1)](made, made, 16, ROWS=3, COLUMNS=16)


def test_a_hook_runs_once_for_each_launch_that_is_not_tuned() -> None:
    calls: list[object] = []
    hooked = tilewright.Config({"BLOCK": 1}, pre_hook=lambda named: calls.append(named["BLOCK"]))
    tuner = tilewright.autotune([hooked], key=["n"])(make_fake())
    for _ in range(3):
        tuner[(1,)](np.zeros(4), 4)
    assert calls == [1, 1, 1]


def test_a_hook_sees_the_options_of_its_configuration() -> None:
    seen: list[object] = []
    hooked = tilewright.Config({"BLOCK": 1}, pre_hook=lambda named: seen.append(named["num_warps"]))
    tilewright.autotune([hooked], key=["n"])(make_fake())[(1,)](np.zeros(4), 4)
    assert seen == [4]


def test_heuristics_compute_options_of_the_launch() -> None:
    kernel = make_fake(has_ignored_options=False)
    computed = tilewright.heuristics(
        {"num_warps": lambda named: 2 * named["n"], "num_stages": lambda named: named["num_warps"]}
    )(kernel)
    computed[(1,)](np.zeros(4), 4, BLOCK=1)
    assert (kernel.launches[-1]["num_warps"], kernel.launches[-1]["num_stages"]) == (8, 8)
    tilewright.autotune([tilewright.Config({"BLOCK": 1})], key=["n"])(computed)[(1,)](
        np.zeros(4), 2
    )
    assert kernel.launches[-1]["num_warps"] == 4


def test_heuristics_of_options_work_on_compiled_kernels() -> None:
    @tilewright.heuristics({"num_warps": lambda named: 8 if named["n"] > 100 else 4})
    @tilewright.jit
    def fill(x_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + offsets, 1.0, mask=offsets < n)

    for n in (17, 1000):
        x = np.zeros(n, np.float32)
        fill[lambda meta: (tilewright.cdiv(meta["n"], meta["BLOCK"]),)](x, n, BLOCK=64)
        assert (x == 1).all()


def test_heuristics_refuse_what_is_neither_parameter_nor_option() -> None:
    with pytest.raises(UnexpectedArgument, match="num_wraps"):
        tilewright.heuristics({"num_wraps": lambda named: 4})(make_fake())
