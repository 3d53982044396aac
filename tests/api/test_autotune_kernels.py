"""The autotuner on compiled kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.api.compile_servers import DIE, HANG, server_that
from tilewright.compiler import client

CONFIGS = [
    tilewright.Config({"BLOCK": 64}, num_warps=2),
    tilewright.Config({"BLOCK": 64}, num_warps=8, num_stages=4),
    tilewright.Config({"BLOCK": 256}),
]


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make_kernel() -> tilewright.JITFunction:
    @tilewright.jit
    def increment(x_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)

    return increment


def tuned(kernel: tilewright.JITFunction, configs: list[tilewright.Config]) -> object:
    return tilewright.autotune(configs, key=["n"], warmup=0, rep=2)(kernel)


def grid(meta: dict[str, int]) -> tuple[int]:
    return (tilewright.cdiv(meta["n"], meta["BLOCK"]),)


def test_a_kernel_in_place_runs_once_for_the_caller() -> None:
    tuner = tuned(make_kernel(), CONFIGS)
    x = np.zeros(1000, np.float32)
    tuner[grid](x, 1000)
    assert (x == 1).all()
    tuner[grid](x, 1000)
    assert (x == 2).all()
    assert tuner.best_config in CONFIGS


def test_options_of_gpus_compile_nothing_twice() -> None:
    kernel = make_kernel()
    before = tilewright.compile_statistics().compiled
    tuner = tuned(kernel, CONFIGS)
    tuner[grid](np.zeros(1000, np.float32), 1000)
    assert tilewright.compile_statistics().compiled - before == 2
    assert tuner.configs_timings[CONFIGS[0]] == tuner.configs_timings[CONFIGS[1]]


def test_the_next_process_finds_the_choice_and_the_kernel() -> None:
    first, second = tuned(make_kernel(), CONFIGS), tuned(make_kernel(), CONFIGS)
    first[grid](np.zeros(1000, np.float32), 1000)
    before = tilewright.compile_statistics().compiled
    second[grid](np.zeros(1000, np.float32), 1000)
    assert second.bench_time is None
    assert second.best_config == first.best_config
    assert tilewright.compile_statistics().compiled == before


def test_a_tile_that_is_too_large_loses() -> None:
    huge = tilewright.Config({"BLOCK": 1 << 21})
    tuner = tuned(make_kernel(), [huge, *CONFIGS])
    tuner[grid](np.zeros(1000, np.float32), 1000)
    assert tuner.failures[huge].startswith("TileTooLarge")


@pytest.mark.parametrize(
    ("deed", "words"), [(DIE, "SIGABRT"), (HANG, "took longer than 3 s")], ids=["die", "hang"]
)
def test_a_configuration_that_kills_or_hangs_the_compiler_loses(
    deed: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DEFAULT_TIMEOUT_S", 3.0)
    # The constant BLOCK=256 is in the request of one configuration only.
    with server_that(deed, b'"256"'):
        tuner = tilewright.autotune(CONFIGS[1:], ["n"], warmup=0, rep=2, compile_in_worker=True)(
            make_kernel()
        )
        x = np.zeros(1000, np.float32)
        tuner[grid](x, 1000)
    assert (x == 1).all()
    assert tuner.best_config == CONFIGS[1]
    assert words in tuner.failures[CONFIGS[2]]


def test_the_interpreter_runs_a_tuned_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_INTERPRET", "1")
    tuner = tuned(make_kernel(), CONFIGS)
    x = np.zeros(100, np.float32)
    tuner[grid](x, 100)
    assert (x == 1).all()
    assert tuner.bench_time is None


def test_heuristics_below_the_tuner_see_its_choice() -> None:
    @tilewright.jit
    def fill(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            tl.store(x_ptr + offsets, 2.0)
        else:
            tl.store(x_ptr + offsets, 1.0, mask=offsets < n)

    computed = tilewright.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})(fill)
    for n, expected in ((512, 2), (500, 1)):
        x = np.zeros(n, np.float32)
        tuned(computed, CONFIGS)[grid](x, n)
        assert (x == expected).all()
