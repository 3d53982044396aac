"""The autotuner's rules, on a kernel that needs no compiler."""

from __future__ import annotations

import copy
import math
import pickle
import time
from pathlib import Path

import numpy as np
import pytest

from tests.api.fake_kernel import FakeKernel, make_fake
from tilewright.runtime.autotune import autotune
from tilewright.runtime.autotuner import Autotuner
from tilewright.runtime.cache import open_default
from tilewright.runtime.config import Config, TuningWarning
from tilewright.runtime.heuristics import heuristics
from tilewright.runtime.tuning import NoUsableConfig
from tilewright.support.errors import (
    ArgumentNotSupported,
    DtypeMismatch,
    DuplicateArgument,
    InvalidOption,
    UnexpectedArgument,
)

SLOW, FAST = Config({"BLOCK": 8}), Config({"BLOCK": 1})


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def tuned(kernel: FakeKernel, configs: list[Config], **settings: object) -> Autotuner:
    given = {"key": ["n"], "do_bench": kernel.bench, **settings}
    return autotune(configs, **given)(kernel)


def data() -> np.ndarray:
    return np.zeros(4)


def test_the_fastest_configuration_is_launched() -> None:
    kernel = make_fake()
    tuner = tuned(kernel, [SLOW, FAST])
    tuner[(1,)](data(), 4)
    assert tuner.best_config == FAST
    assert kernel.launches[-1]["BLOCK"] == 1
    assert tuner.configs_timings[FAST][0] < tuner.configs_timings[SLOW][0]
    assert tuner.bench_time > 0
    assert list(tuner.cache.values()) == [FAST]


def test_the_own_timer_finds_the_fastest_and_spends_little_on_the_hopeless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = make_fake()
    monkeypatch.setattr(time, "perf_counter", kernel.clock)
    configs = [FAST, Config({"BLOCK": 40})]
    tuner = tuned(kernel, configs, do_bench=None, warmup=0, rep=200)
    tuner[(1,)](data(), 4)
    assert tuner.best_config == FAST
    blocks = [launch["BLOCK"] for launch in kernel.launches]
    assert blocks.count(40) < blocks.count(1) / 10


def test_one_configuration_is_launched_once_and_not_timed() -> None:
    kernel = make_fake()
    tuner = tuned(kernel, [FAST])
    tuner[(1,)](data(), 4)
    assert len(kernel.launches) == 1
    assert tuner.best_config == FAST and tuner.bench_time is None


def test_a_known_key_is_not_tuned_again() -> None:
    kernel = make_fake()
    tuner = tuned(kernel, [SLOW, FAST])
    tuner[(1,)](data(), 4)
    num_launches = len(kernel.launches)
    tuner[(1,)](data(), 4)
    assert len(kernel.launches) == num_launches + 1


@pytest.mark.parametrize(
    ("x", "n"), [(np.zeros(4), 5), (np.zeros(4, np.float32), 4)], ids=["value", "dtype"]
)
def test_another_key_value_or_dtype_is_tuned_again(x: np.ndarray, n: int) -> None:
    tuner = tuned(make_fake(), [SLOW, FAST], cache_results=False)
    tuner[(1,)](data(), 4)
    tuner[(1,)](x, n)
    assert len(tuner.cache) == 2


def test_configurations_that_a_script_replaces_are_launched_from_then_on() -> None:
    kernel = make_fake()
    tuner = tuned(kernel, [SLOW, FAST])
    tuner[(1,)](data(), 4)
    for block in (8, 16):
        tuner.configs = [Config({"BLOCK": block})]
        tuner[(1,)](data(), 4)
        assert kernel.launches[-1]["BLOCK"] == block


def test_a_choice_that_a_script_makes_or_takes_back_counts() -> None:
    kernel = make_fake()
    tuner = tuned(kernel, [SLOW, FAST], cache_results=False)
    tuner[(1,)](data(), 4)
    (key,) = tuner.cache
    tuner.cache[key] = SLOW
    tuner[(1,)](data(), 4)
    assert kernel.launches[-1]["BLOCK"] == 8
    tuner.cache.clear()
    tuner[(1,)](data(), 4)
    assert kernel.launches[-1]["BLOCK"] == 1


def test_arrays_on_a_gpu_have_a_choice_of_their_own() -> None:
    class OnGpu(np.ndarray):
        is_cuda = True

    tuner = tuned(make_fake(), [SLOW, FAST], cache_results=False)
    tuner[(1,)](data(), 4)
    tuner[(1,)](data().view(OnGpu), 4)
    assert [key[-1] for key in tuner.cache] == [None, "cuda"]


def test_the_callable_grid_sees_the_tuned_values() -> None:
    kernel = make_fake()
    tuned(kernel, [SLOW, FAST])[lambda meta: (16 // meta["BLOCK"],)](data(), 4)
    assert kernel.launches[-1]["grid"] == (16,)


def test_arrays_hold_what_one_launch_leaves_without_being_named() -> None:
    x = np.arange(4.0)
    tuned(make_fake(), [SLOW, FAST])[(1,)](x, 4)
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_restore_value_lets_every_run_find_the_same_contents() -> None:
    found: list[float] = []
    kernel, x = make_fake(), np.arange(4.0)
    hook = lambda named, reset_only: found.append(float(named["x"][0]))  # noqa: E731
    tuned(kernel, [SLOW, FAST], restore_value=["x"], pre_hook=hook)[(1,)](x, 4)
    assert set(found) == {0.0}
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_reset_to_zero_zeroes_before_every_run_and_the_launch() -> None:
    x = np.arange(4.0)
    tuned(make_fake(), [SLOW, FAST], reset_to_zero=["x"])[(1,)](x, 4)
    assert x.tolist() == [1.0] * 4


def test_restore_value_refuses_an_argument_that_is_no_array() -> None:
    tuner = tuned(make_fake(), [SLOW, FAST], restore_value=["n"])
    with pytest.raises(ArgumentNotSupported, match="restore_value names `n`, which is a int"):
        tuner[(1,)](data(), 4)


def test_a_configuration_out_of_resources_loses_and_is_reported() -> None:
    tuner = tuned(make_fake(largest_block=1), [SLOW, FAST])
    tuner[(1,)](data(), 4)
    assert tuner.best_config == FAST
    assert math.isinf(tuner.configs_timings[SLOW][0])
    assert tuner.failures == {SLOW: "TileTooLarge: a tile of 8 elements"}


def test_no_usable_configuration_is_an_error_that_lists_them() -> None:
    tuner = tuned(make_fake(largest_block=0), [SLOW, FAST])
    with pytest.raises(NoUsableConfig, match=r"BLOCK=8: TileTooLarge: a tile of 8 elements"):
        tuner[(1,)](data(), 4)


def test_an_error_of_the_kernel_itself_is_raised() -> None:
    kernel = make_fake()

    def refuse(*args: object, **kwargs: object) -> object:
        raise DtypeMismatch("int32 and fp32")

    kernel.warmup = refuse
    with pytest.raises(DtypeMismatch):
        tuned(kernel, [SLOW, FAST])[(1,)](data(), 4)


@pytest.mark.parametrize("configs", [[SLOW, FAST], [FAST, SLOW]])
def test_a_configuration_that_is_no_program_loses_with_a_warning(configs: list[Config]) -> None:
    kernel = make_fake()
    compiled = kernel.warmup

    def refuse_slow(*args: object, **kwargs: object) -> object:
        if kwargs["BLOCK"] == 8:
            raise DtypeMismatch("int32 and fp32")
        return compiled(*args, **kwargs)

    kernel.warmup = refuse_slow
    tuner = tuned(kernel, configs)
    with pytest.warns(TuningWarning, match=r"fake is not compiled with BLOCK=8(.|\n)*int32 and"):
        tuner[(1,)](data(), 4)
    assert tuner.best_config == FAST
    assert tuner.failures == {SLOW: "DtypeMismatch: int32 and fp32"}


@pytest.mark.parametrize("found", [2, 2.0, np.float32(2), [2.0], (2.0, 2.0, 2.0), [2.0, 3.0]])
def test_a_timer_returns_a_number_or_several(found: object) -> None:
    tuner = tuned(make_fake(), [SLOW, FAST], do_bench=lambda call, quantiles: found)
    tuner[(1,)](data(), 4)
    assert [times[0] for times in tuner.configs_timings.values()] == [2.0, 2.0]


@pytest.mark.parametrize("found", [None, "fast", (), [None, 1.0, 2.0]])
def test_what_is_no_time_is_refused(found: object) -> None:
    tuner = tuned(make_fake(), [SLOW, FAST], do_bench=lambda call, quantiles: found)
    with pytest.raises(InvalidOption, match=r"`do_bench` returned .*, which is no time"):
        tuner[(1,)](data(), 4)


def test_results_are_kept_on_disk_for_the_next_process() -> None:
    tuned(make_fake(), [SLOW, FAST])[(1,)](data(), 4)
    kernel = make_fake()
    second = tuned(kernel, [SLOW, FAST])
    second[(1,)](data(), 4)
    assert len(kernel.launches) == 1
    assert second.best_config == FAST and second.bench_time is None
    assert second.configs_timings[FAST][0] > 0


@pytest.mark.parametrize(
    ("kernel", "configs"),
    [
        (make_fake(cache_key="source-2"), [SLOW, FAST]),
        (make_fake(), [FAST, SLOW]),
        (make_fake(), [SLOW, FAST, Config({"BLOCK": 2})]),
    ],
    ids=["source", "order", "configs"],
)
def test_kept_results_are_of_one_source_and_one_list(
    kernel: FakeKernel, configs: list[Config]
) -> None:
    tuned(make_fake(), [SLOW, FAST])[(1,)](data(), 4)
    tuned(kernel, configs)[(1,)](data(), 4)
    assert len(kernel.launches) > 1


@pytest.mark.parametrize(
    "rows",
    [None, 3, [], [[1.0] * 3], [None, None], [["a", 1.0, 1.0], None], [[-1.0] * 3] * 2, [3, 3]],
    ids=repr,
)
def test_a_damaged_record_is_tuned_again(rows: object) -> None:
    tuned(make_fake(), [SLOW, FAST])[(1,)](data(), 4)
    cache = open_default()
    (entry,) = cache.entries()
    cache.put_json(entry.key, rows)
    kernel = make_fake()
    tuned(kernel, [SLOW, FAST])[(1,)](data(), 4)
    assert len(kernel.launches) > 1


def test_a_configuration_with_a_hook_is_not_kept_on_disk() -> None:
    calls: list[object] = []
    hooked = Config({"BLOCK": 1}, pre_hook=lambda named: calls.append(named["BLOCK"]))
    tuned(make_fake(), [SLOW, hooked])[(1,)](data(), 4)
    assert calls and set(calls) == {1}
    assert open_default().entries() == []


def test_configurations_that_compile_to_one_kernel_are_timed_once() -> None:
    kernel = make_fake()
    same = [Config({"BLOCK": 2}, num_warps=w, num_stages=s) for w in (2, 4, 8) for s in (1, 3)]
    tuner = tuned(kernel, same)
    tuner[(1,)](data(), 4)
    times = {tuner.configs_timings[config] for config in same}
    assert len(times) == 1
    assert tuner.best_config == same[0]


def test_options_that_change_nothing_are_not_passed_to_a_launch() -> None:
    kernel = make_fake()
    tuned(kernel, [Config({"BLOCK": 1}, num_warps=8)])[(1,)](data(), 4)
    assert "num_warps" not in kernel.launches[-1]


def test_options_that_change_the_kernel_are_passed_to_a_launch() -> None:
    kernel = make_fake(has_ignored_options=False)
    tuned(kernel, [Config({"BLOCK": 1}, num_warps=8)])[(1,)](data(), 4)
    assert kernel.launches[-1]["num_warps"] == 8


def test_said_stages_are_passed_to_a_launch_and_unsaid_ones_are_not() -> None:
    kernel = make_fake(has_ignored_options=False)
    tuned(kernel, [Config({"BLOCK": 1}, num_stages=3)])[(1,)](data(), 4)
    assert kernel.launches[-1]["num_stages"] == 3
    tuned(kernel, [Config({"BLOCK": 1})])[(1,)](data(), 4)
    assert "num_stages" not in kernel.launches[-1]


SCHEDULES = ({"num_stages": 1}, {"schedule": "persist static"})


def test_each_configuration_is_tried_with_each_schedule_of_the_kernel() -> None:
    kernel = make_fake(has_ignored_options=False, options_of_schedules=SCHEDULES)
    said = Config({"BLOCK": 4}, num_stages=3)
    tuner = tuned(kernel, [Config({"BLOCK": 2}), said], schedules="auto")
    tuner[(1,)](data(), 4)
    tried = [config.short() for config in tuner.configs_timings]
    assert tried == [
        "BLOCK=2",
        "BLOCK=2, num_stages=1",
        "BLOCK=2, schedule=persist static",
        "BLOCK=4, num_stages=3",
    ]
    assert len(tuner.warmup(data(), 4)) == 4
    assert tuner.configs == [Config({"BLOCK": 2}), said]


def test_one_configuration_is_tuned_among_schedules_and_kept(cache_dir: Path) -> None:
    kernel = make_fake(has_ignored_options=False, options_of_schedules=SCHEDULES)
    tuner = tuned(kernel, [FAST], schedules="auto")
    tuner[(1,)](data(), 4)
    assert len(tuner.configs_timings) == 3 and tuner.bench_time is not None
    again = tuned(
        make_fake(has_ignored_options=False, options_of_schedules=SCHEDULES),
        [FAST],
        schedules="auto",
    )
    again[(1,)](data(), 4)
    assert again.bench_time is None and again.best_config == tuner.best_config


def test_schedules_are_not_tried_unless_they_are_asked_for() -> None:
    kernel = make_fake(options_of_schedules=SCHEDULES)
    tuner = tuned(kernel, [SLOW, FAST])
    tuner[(1,)](data(), 4)
    assert list(tuner.configs_timings) == [SLOW, FAST]
    with pytest.raises(InvalidOption, match="`schedules` is 'all'"):
        tuned(make_fake(), [FAST], schedules="all")


def test_a_configuration_that_does_not_compile_has_no_schedules_and_loses() -> None:
    kernel = make_fake(largest_block=4, options_of_schedules=SCHEDULES)
    tuner = tuned(kernel, [SLOW, FAST], schedules="auto")
    tuner[(1,)](data(), 4)
    assert list(tuner.failures) == [SLOW] and len(tuner.configs_timings) == 4


def test_options_of_other_compilers_are_accepted_and_dropped() -> None:
    kernel = make_fake()
    config = Config({"BLOCK": 1, "waves_per_eu": 2, "num_producer_groups": 1})
    tuned(kernel, [config])[(1,)](data(), 4)
    assert set(kernel.launches[-1]) == {"x", "n", "BLOCK", "grid"}


def test_options_of_roles_are_passed_to_a_launch() -> None:
    kernel = make_fake(has_ignored_options=False)
    config = Config({"BLOCK": 1, "reg_dec_producer": 40}, num_consumer_groups=2)
    tuned(kernel, [config])[(1,)](data(), 4)
    launched = kernel.launches[-1]
    assert (launched["num_consumer_groups"], launched["reg_dec_producer"]) == (2, 40)


def test_early_pruning_gets_configs_arguments_and_keywords() -> None:
    seen: list[object] = []

    def prune(configs, named_args, **kwargs):
        seen.append((len(configs), set(named_args), kwargs["n"]))
        return configs[1:]

    kernel = make_fake()
    tuner = tuned(kernel, [SLOW, FAST], prune_configs_by={"early_config_prune": prune})
    tuner[(1,)](data(), n=4)
    assert seen == [(2, {"x"}, 4)]
    assert [launch["BLOCK"] for launch in kernel.launches] == [1]


def test_pruning_to_nothing_is_an_error() -> None:
    prune = {"early_config_prune": lambda configs, named_args, **kwargs: []}
    with pytest.raises(InvalidOption, match="left no configuration"):
        tuned(make_fake(), [SLOW, FAST], prune_configs_by=prune)[(1,)](data(), 4)


@pytest.mark.parametrize(("top_k", "tried"), [(1, {4}), (0.5, {4, 2}), (2, {4, 2})])
def test_the_model_keeps_the_best_of_its_estimates(top_k: float, tried: set[int]) -> None:
    kernel = make_fake()
    configs = [Config({"BLOCK": block}) for block in (1, 2, 3, 4)]
    order = {4: 0.0, 2: 1.0, 1: 2.0, 3: 3.0}
    pruning = {"perf_model": lambda BLOCK, **rest: order[BLOCK], "top_k": top_k}
    tuned(kernel, configs, prune_configs_by=pruning)[(1,)](data(), 4)
    assert {launch["BLOCK"] for launch in kernel.launches} == tried


def test_top_k_must_be_a_count_or_a_share() -> None:
    pruning = {"perf_model": lambda **named: 0.0, "top_k": 1.5}
    with pytest.raises(InvalidOption, match=r"top_k is 1\.5"):
        tuned(make_fake(), [SLOW, FAST], prune_configs_by=pruning)[(1,)](data(), 4)


def test_a_part_of_pruning_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidOption, match="`prune_configs_by` has 'early_prune'"):
        tuned(make_fake(), [SLOW, FAST], prune_configs_by={"early_prune": max})


@pytest.mark.parametrize(
    "settings", [{"key": ["m"]}, {"reset_to_zero": ["m"]}, {"restore_value": ["m"]}]
)
def test_a_name_that_is_no_parameter_is_refused_when_decorating(settings: dict) -> None:
    with pytest.raises(UnexpectedArgument, match=r"names `m`, which is no parameter of fake\(\)"):
        tuned(make_fake(), [SLOW, FAST], **settings)


def test_a_tuned_parameter_given_in_the_call_is_refused() -> None:
    with pytest.raises(DuplicateArgument, match="gets `BLOCK` from the call and"):
        tuned(make_fake(), [SLOW, FAST])[(1,)](data(), 4, BLOCK=2)


def test_ctrl_c_keeps_the_best_so_far_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    calls = 0

    def bench(call, quantiles):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        call()
        return [1.0, 1.0, 1.0]

    tuner = tuned(make_fake(), [SLOW, FAST], do_bench=bench)
    x = data()
    tuner[(1,)](x, 4)
    assert tuner.best_config == SLOW
    assert x.tolist() == [1.0] * 4
    assert "interrupted; keeping BLOCK=8" in capsys.readouterr().err
    assert open_default().entries() == []


def test_ctrl_c_before_the_first_result_ends_the_program_and_restores(capsys) -> None:
    def bench(call, quantiles):
        call()
        raise KeyboardInterrupt

    x = data()
    with pytest.raises(KeyboardInterrupt):
        tuned(make_fake(), [SLOW, FAST], do_bench=bench)[(1,)](x, 4)
    assert x.tolist() == [0.0] * 4


def test_the_authors_timer_decides() -> None:
    times = iter([1.0, 2.0])
    tuner = tuned(make_fake(), [SLOW, FAST], do_bench=lambda call, quantiles: next(times))
    tuner[(1,)](data(), 4)
    assert tuner.best_config == SLOW


def test_warmup_compiles_every_configuration_and_launches_none() -> None:
    kernel = make_fake()
    assert len(tuned(kernel, [SLOW, FAST]).warmup(data(), 4, grid=(1,))) == 2
    assert kernel.launches == []
    assert len(kernel.compiled) == 2


def test_run_takes_the_grid_as_a_keyword() -> None:
    kernel = make_fake()
    tuned(kernel, [FAST]).run(data(), 4, grid=(3,))
    assert kernel.launches[-1]["grid"] == (3,)


def test_an_interpreted_kernel_is_not_timed() -> None:
    kernel = make_fake(is_interpreted=True)
    tuned(kernel, [Config({"BLOCK": 1}, num_warps=8), SLOW])[(1,)](data(), 4)
    assert len(kernel.launches) == 1


def test_heuristics_compute_in_order_and_below_the_tuner() -> None:
    kernel = make_fake()
    computed = heuristics({"n": lambda named: named["x"].size * named["BLOCK"]})(kernel)
    tuner = autotune([SLOW, FAST], key=[], do_bench=kernel.bench)(computed)
    tuner[(1,)](data())
    assert kernel.launches[-1]["n"] == 4
    assert tuner.fn is computed and tuner.base_fn is kernel


def test_heuristics_see_what_earlier_ones_computed() -> None:
    kernel = make_fake()
    values = {"n": lambda named: 2, "BLOCK": lambda named: named["n"] - 1}
    heuristics(values)(kernel)[lambda meta: (meta["BLOCK"],)](data())
    assert kernel.launches[-1]["grid"] == (1,)


def test_heuristics_refuse_a_name_that_is_no_parameter() -> None:
    with pytest.raises(UnexpectedArgument, match=r"heuristics\(\) names `m`"):
        heuristics({"m": lambda named: 1})(make_fake())


def test_configs_with_equal_values_are_equal_and_print_every_field() -> None:
    assert Config({"A": 1, "B": 2}) == Config({"B": 2, "A": 1})
    assert hash(Config({"A": [1]})) == hash(Config({"A": [1]}))
    assert Config({"A": 1}) != Config({"A": 1}, num_warps=8)
    assert str(Config({"A": 1}, num_stages=2)) == (
        "A: 1, num_warps: 4, num_stages: 2, num_ctas: 1, maxnreg: None, "
        "num_consumer_groups: 0, num_buffers_warp_spec: 0"
    )


def test_stages_that_nobody_said_stay_unsaid_in_copies() -> None:
    unsaid, said = Config({"A": 1}), Config({"A": 1}, num_stages=3)
    assert unsaid.num_stages == said.num_stages == 3
    assert unsaid != said and hash(unsaid) != hash(said)
    copies = [
        Config(unsaid.kwargs, num_stages=unsaid.num_stages),
        copy.deepcopy(unsaid),
        pickle.loads(pickle.dumps(unsaid)),
    ]
    assert all(one == unsaid and one.options() == {} for one in copies)
    assert said.options() == {"num_stages": 3} and said.short() == "A=1, num_stages=3"
    assert unsaid.all_kwargs()["num_stages"] * 2 == 6


def test_a_choice_among_unsaid_stages_is_not_taken_for_said_ones(cache_dir: Path) -> None:
    for stages in ({}, {"num_stages": 3}):
        kernel = make_fake()
        same = [Config({"BLOCK": block}, **stages) for block in (8, 1)]
        tuner = tuned(kernel, same)
        tuner[(1,)](data(), 4)
        assert tuner.bench_time is not None
    assert len(open_default().entries()) == 2


def test_a_written_progress_of_tuning_names_each_configuration(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_PRINT_AUTOTUNING", "1")
    tuned(make_fake(largest_block=1), [SLOW, FAST])[(1,)](data(), 4)
    written = capsys.readouterr().err
    assert "BLOCK=8: TileTooLarge" in written
    assert "tuned fake: BLOCK=1" in written
