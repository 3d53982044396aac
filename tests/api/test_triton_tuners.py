"""Classes derived from `triton.runtime.Autotuner`, as packages for Triton write them."""

from __future__ import annotations

import builtins
import math
from pathlib import Path

import numpy as np
import pytest

from tests.api.alias import run_script  # noqa: F401 - puts the alias on the path

import triton  # isort: skip
import triton.language as tl  # isort: skip

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=8) for block in (16, 64, 128)]


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def make_kernel() -> triton.JITFunction:
    @triton.jit
    def add_one(x_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)

    return add_one


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def make(cls, configs=CONFIGS, **settings):
    kernel = make_kernel()
    return cls(kernel, kernel.arg_names, configs, ["n"], None, None, **settings)


class OwnRun(triton.runtime.Autotuner):
    """Chooses by itself, out of the parts that the base class has."""

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        key = tuple(self.nargs[name] for name in self.keys)
        if key not in self.cache:
            configs = self.prune_configs(kwargs)

            def benchmark():
                timings = {c: self._bench(*args, config=c, **kwargs) for c in configs}
                self.cache[key] = builtins.min(timings, key=lambda config: timings[config])
                chosen = self.cache[key].all_kwargs()
                self.pre_hook({**self.nargs, **kwargs, **chosen}, reset_only=True)
                self.configs_timings = timings

            self.is_hit = self.check_disk_cache(key, configs, benchmark)
        config = self.cache[key]
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **kwargs, **config.all_kwargs()})
        kernel = self.fn.run(*args, **kwargs, **config.all_kwargs())
        self.nargs = None
        return kernel


def test_a_tuner_with_its_own_run_launches_once_for_the_caller() -> None:
    pruning = {"early_config_prune": lambda configs, named_args, **kwargs: configs[:2]}
    for is_hit in (False, True):
        tuner = make(OwnRun, prune_configs_by=pruning, warmup=0, rep=1, cache_results=True)
        x = np.zeros(1000, np.float32)
        tuner[grid](x, 1000)
        assert (x == 1).all()
        assert tuner.is_hit is is_hit
        assert set(tuner.configs_timings) == set(CONFIGS[:2])


def test_a_configuration_that_does_not_fit_is_infinitely_slow() -> None:
    tuner = make(triton.runtime.Autotuner, warmup=0, rep=1)
    huge = triton.Config({"BLOCK": 1 << 22})
    x = np.zeros(100, np.float32)
    assert tuner._bench(x, 100, config=huge, grid=(1,)) == [math.inf] * 3
    with pytest.raises(ValueError, match="BLOCK"):
        tuner._bench(x, 100, BLOCK=16, config=CONFIGS[0], grid=(1,))


def test_a_tuner_with_its_own_bench_is_asked_for_every_configuration() -> None:
    class OwnBench(triton.runtime.Autotuner):
        def _bench(self, *args, config, **meta):
            assert meta["grid"] is grid
            return [float(config.kwargs["BLOCK"] == 64), 0.0, 0.0]

    tuner = make(OwnBench)
    x = np.zeros(1000, np.float32)
    tuner[grid](x, 1000)
    assert (x == 1).all()
    assert tuner.best_config == CONFIGS[0]
    assert tuner.configs_timings[CONFIGS[1]] == (1.0, 0.0, 0.0)


def test_a_hook_of_a_derived_class_runs_before_every_timed_run() -> None:
    class Hooked(triton.runtime.Autotuner):
        calls = ()

        def pre_hook(self, kwargs, reset_only=False):
            self.calls = (*self.calls, (kwargs["n"], reset_only))

    tuner = make(Hooked, warmup=0, rep=1)
    tuner[grid](np.zeros(17, np.float32), 17)
    assert tuner.calls[-1] == (17, True)
    assert len(tuner.calls) > 3 and tuner.calls[0] == (17, False)


def test_hooks_put_in_place_of_a_tuners_own_run_around_every_timed_run() -> None:
    class Keeping(triton.runtime.Autotuner):
        """Puts back what it kept itself, as tuners do that know arguments which may be None."""

        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            self.kept, self.calls = {}, []
            self.pre_hook, self.post_hook = self.keep, self.put_back

        def keep(self, named, reset_only=False):
            self.calls.append("reset" if reset_only else "keep")
            if not reset_only:
                self.kept = {"x_ptr": named["x_ptr"].copy()}

        def put_back(self, named, exception):
            self.calls.append("put back")
            for name, copy in self.kept.items():
                named[name][:] = copy
            self.kept = {}

    tuner = make(Keeping, warmup=0, rep=1)
    x = np.zeros(17, np.float32)
    tuner[grid](x, 17)
    assert (x == 1).all()
    timed, last = tuner.calls[:-1], tuner.calls[-1]
    assert timed == ["keep", "put back"] * (len(timed) // 2) and len(timed) >= 6
    assert last == "reset"


def test_run_without_a_grid_leaves_it_to_the_kernel_inside() -> None:
    class Gridded(triton.KernelInterface):
        def __init__(self, kernel):
            self.fn = kernel

        def run(self, *args, grid=None, warmup=False, **kwargs):
            assert grid is None
            return self.fn.run(*args, grid=own_grid, warmup=warmup, **kwargs)

    own_grid, kernel = grid, make_kernel()
    tuner = triton.runtime.Autotuner(
        Gridded(kernel), kernel.arg_names, CONFIGS, ["n"], None, None, warmup=0, rep=1
    )
    x = np.zeros(130, np.float32)
    tuner.run(x, 130)
    assert (x == 1).all()
    with pytest.raises(TypeError, match="grid"):
        make(triton.runtime.Autotuner, configs=CONFIGS[:1]).run(x, 130)


def test_one_pruned_configuration_is_not_timed() -> None:
    pruning = {"early_config_prune": lambda configs, named_args, **kwargs: configs[1:2]}

    def bench(call, quantiles):
        raise AssertionError("nothing is to be timed")

    tuner = make(triton.runtime.Autotuner, prune_configs_by=pruning, do_bench=bench)
    x = np.zeros(17, np.float32)
    tuner[grid](x, 17)
    assert (x == 1).all() and tuner.best_config == CONFIGS[1]


def test_parts_of_pruning_that_are_none_are_left_out() -> None:
    pruning = {"early_config_prune": None, "perf_model": None, "top_k": None}
    tuner = make(triton.runtime.Autotuner, prune_configs_by=pruning, do_bench=lambda call, **q: 1.0)
    tuner[grid](np.zeros(17, np.float32), 17)
    assert len(tuner.configs_timings) == len(CONFIGS)


@pytest.mark.parametrize("configs", [CONFIGS, CONFIGS[:1]])
def test_a_parameter_from_the_call_and_a_configuration_is_a_value_error(configs) -> None:
    tuner = make(triton.runtime.Autotuner, configs)
    with pytest.raises(ValueError, match="`BLOCK` from the call and from the configuration"):
        tuner[(1,)](np.zeros(17, np.float32), 17, BLOCK=32)


def test_a_tuner_has_a_timer_that_can_be_replaced() -> None:
    tuner = make(triton.runtime.Autotuner, warmup=0, rep=1)
    calls = []
    times = tuner.do_bench(lambda: calls.append(1), quantiles=(0.5, 0.2, 0.8))
    assert calls and len(times) == 3

    def bench(call, quantiles):
        call()
        return [2.0] * 3

    tuner.do_bench = bench
    tuner[grid](np.zeros(17, np.float32), 17)
    assert tuner.do_bench is bench
    assert set(tuner.configs_timings.values()) == {(2.0, 2.0, 2.0)}


@pytest.mark.parametrize(("top_k", "count"), [(0.5, 2), (0.25, 1), (3, 3), (1.0, 4)])
def test_a_share_is_one_of_all_configurations(top_k: float, count: int) -> None:
    configs = [*CONFIGS, triton.Config({"BLOCK": 256})]
    pruning = {
        "early_config_prune": lambda configs, named_args, **kwargs: configs[:4],
        "perf_model": lambda n, BLOCK, num_warps, num_stages, **rest: BLOCK * num_warps,
        "top_k": top_k,
    }
    tuner = make(triton.runtime.Autotuner, configs, prune_configs_by=pruning, warmup=0, rep=1)
    tuner[grid](np.zeros(17, np.float32), 17)
    assert len(tuner.configs_timings) == count or (count == 1 and not tuner.configs_timings)


def test_a_listener_hears_of_a_choice_that_was_on_disk() -> None:
    told: list[dict[str, object]] = []
    triton.knobs.autotuning.listener = lambda **found: told.append(found)
    try:
        for _ in range(2):
            tuner = make(triton.runtime.Autotuner, warmup=0, rep=1, cache_results=True)
            tuner[grid](np.zeros(17, np.float32), 17)
    finally:
        triton.knobs.autotuning.listener = None
    assert [found["cache_hit"] for found in told] == [False, True]
    assert told[0]["best_config"] == told[1]["best_config"]
    assert set(told[1]["configs_timings"]) == set(CONFIGS)


def test_an_override_of_the_ir_is_part_of_the_key() -> None:
    first = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 16}, ir_override="a.ttir")]
    second = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 16}, ir_override="b.ttir")]
    assert first[1] != second[1]
    assert first[1].all_kwargs()["ir_override"] == "a.ttir"
    timed = []

    def bench(call, quantiles):
        timed.append(call)
        return [1.0, 1.0, 1.0]

    for configs in (first, second, second):
        tuner = make(triton.runtime.Autotuner, configs, do_bench=bench, cache_results=True)
        tuner[grid](np.zeros(17, np.float32), 17)
    assert len(timed) == 2


def test_a_key_that_is_no_parameter_is_left_out_with_a_warning() -> None:
    kernel = make_kernel()
    x = np.zeros(100, np.float32)
    said = r"names `x_prt`, which is no parameter of add_one\(\)"
    with pytest.warns(UserWarning, match=said) as warned:
        tuned = triton.autotune(CONFIGS, key=["n", "x_prt"])(kernel)
    assert warned[0].filename == __file__ and tuned.keys == ["n", "x_prt"]
    tuned[grid](x, 100)
    assert len(tuned.cache) == 1 and x.any()


def test_pruning_and_names_of_arrays_may_be_assigned_later() -> None:
    class Narrowed(triton.runtime.Autotuner):
        """Narrows the choice of the author once the tuner is made."""

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            author = self.early_config_prune

            def choose(configs, named_args, **meta):
                return author(configs, named_args, **meta)[1:]

            self.early_config_prune = choose

    pruning = {"early_config_prune": lambda configs, named_args, **kwargs: configs[:3]}
    configs = [*CONFIGS, triton.Config({"BLOCK": 256})]
    tuner = make(Narrowed, configs, prune_configs_by=pruning, warmup=0, rep=1)
    tuner[grid](np.zeros(17, np.float32), 17)
    assert set(tuner.configs_timings) == set(CONFIGS[1:])
    tuner.perf_model = lambda BLOCK, **rest: BLOCK
    tuner.configs_top_k = 1
    x = np.zeros(18, np.float32)
    tuner.reset_to_zero = ["x_ptr"]
    tuner[grid](x, 18)
    assert tuner.best_config == CONFIGS[1] and (x == 1).all()
    assert tuner.configs_top_k == 1 and tuner.reset_to_zero == ["x_ptr"]
    tuner.restore_value = ["x_ptr"]
    assert tuner.restore_value == ["x_ptr"]
