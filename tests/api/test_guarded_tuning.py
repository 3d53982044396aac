"""What a tuner does with schedules of its own that do not compile, hang, or compute another thing.

On a kernel that needs no compiler and no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.api.fake_kernel import FakeKernel, make_fake
from tilewright.runtime import autotuner as autotune_module
from tilewright.runtime import stopped_trials
from tilewright.runtime.autotune import autotune
from tilewright.runtime.autotuner import Autotuner
from tilewright.runtime.config import Config
from tilewright.runtime.fingerprint import digest
from tilewright.runtime.result_check import ResultCheck
from tilewright.support.errors import Deadlock, InternalError, InvalidOption

GOOD, BAD = {"num_stages": 1}, {"schedule": "persist static"}
BASE = Config({"BLOCK": 2})


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


@dataclass
class Faulty(FakeKernel):
    """A fake whose schedule `persist static` fails when it is compiled, or when it runs."""

    at_compile: Exception | None = None
    at_launch: Exception | None = None
    adds: int = 1

    def warmup(self, *args: object, **kwargs: object) -> SimpleNamespace:
        if "schedule" in kwargs and self.at_compile is not None:
            raise self.at_compile
        return super().warmup(*args, **kwargs)

    def __getitem__(self, grid: object):
        launch = super().__getitem__(grid)

        def maybe(x: np.ndarray, *args: object, **kwargs: object) -> None:
            if "schedule" in kwargs:
                if self.at_launch is not None:
                    raise self.at_launch
                x += self.adds - 1
            launch(x, *args, **kwargs)

        return maybe


def faulty(**settings: object) -> Faulty:
    made = make_fake(has_ignored_options=False, options_of_schedules=(GOOD, BAD))
    given = {field.name: getattr(made, field.name) for field in fields(made)}
    return Faulty(**{**given, **settings})


def tuned(kernel: FakeKernel, **settings: object) -> Autotuner:
    return autotune([BASE], key=["n"], do_bench=kernel.bench, schedules="auto", **settings)(kernel)


def failure_of(tuner: Autotuner) -> str:
    ((config, text),) = tuner.failures.items()
    assert config.kwargs["schedule"] == "persist static"
    assert tuner.best_config is not config
    return text


@pytest.mark.parametrize("error", [InternalError("no such ring"), AssertionError("no such ring")])
def test_an_added_schedule_that_does_not_compile_loses(error: Exception) -> None:
    tuner = tuned(faulty(at_compile=error))
    tuner[(1,)](np.zeros(4), 4)
    assert failure_of(tuner) == f"{type(error).__name__}: no such ring"


def test_what_its_author_wrote_does_not_lose_by_a_defect() -> None:
    kernel = faulty(at_compile=AssertionError("no such ring"))
    said = Config({"BLOCK": 2, "schedule": "persist static"})
    tuner = autotune([BASE, said], key=["n"], do_bench=kernel.bench)(kernel)
    with pytest.raises(AssertionError):
        tuner[(1,)](np.zeros(4), 4)


@pytest.mark.parametrize(("adds", "loses"), [(1, False), (2, True)])
def test_another_result_loses_where_results_are_verified(adds: int, loses: bool) -> None:
    tuner = tuned(faulty(adds=adds), verify=0.01)
    x = np.zeros(4)
    tuner[(1,)](x, 4)
    assert (x == 1).all()
    assert bool(tuner.failures) is loses
    if loses:
        assert failure_of(tuner) == "`x` differs from that of the first configuration by 1"


def test_another_result_goes_unseen_where_nobody_asks() -> None:
    tuner = tuned(faulty(adds=2))
    tuner[(1,)](np.zeros(4), 4)
    assert not tuner.failures


@pytest.mark.parametrize("verify", [-0.1, 1, 2.0])
def test_a_tolerance_is_a_share(verify: float) -> None:
    with pytest.raises(InvalidOption, match="`verify` is"):
        tuned(faulty(), verify=verify)


class OnGpu(np.ndarray):
    is_cuda = True


def test_a_schedule_that_hangs_is_named_and_left_out_by_the_next_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stopped_trials, "_key", lambda kernel: digest("stopped", kernel))
    fault = Deadlock("k: program (0, 0, 0) waited for 10 s")
    driver = SimpleNamespace(pending_fault=lambda: fault, ignored_options=frozenset())
    monkeypatch.setattr(stopped_trials, "load_driver", lambda target: driver)
    monkeypatch.setattr(autotune_module, "load_driver", lambda target: driver)
    # A library says in its own words that the context is lost.
    kernel = faulty(at_launch=RuntimeError("CUDA error: unspecified launch failure"))
    x = np.zeros(4).view(OnGpu)
    with pytest.raises(Deadlock) as caught:
        tuned(kernel, cache_results=False)[(1,)](x, 4)
    assert "the tuner added the schedule of BLOCK=2, schedule=persist static" in str(caught.value)
    assert [c.get("deadlock_seconds") for c in kernel.compiled] == [None, 10, 10]
    again = tuned(faulty(), cache_results=False)
    again[(1,)](x, 4)
    assert [config.short() for config in again.configs_timings] == [
        "BLOCK=2",
        "BLOCK=2, num_stages=1",
    ]
    assert again.fn.launches[-1].get("deadlock_seconds") is None


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_results_are_compared_by_their_largest_element(dtype: type[np.generic]) -> None:
    arguments = {"c": np.zeros((2, 3), dtype)}
    check = ResultCheck(arguments, 0.01)
    check.keep([["c"]])

    def leave(value: float, at: int) -> None:
        arguments["c"].reshape(-1)[at] = value

    assert check.run(lambda: leave(1000, 0)) == ""
    assert check.run(lambda: leave(1005, 0)) == ""
    # What a run does not write is as before the first one, not as the last one left it.
    assert "by 1" in check.run(lambda: None)
    assert "by 0.1" in check.run(lambda: leave(1100, 0))


def test_not_a_number_is_equal_to_itself_only() -> None:
    arguments = {"c": np.array([np.nan, 1.0, np.inf])}
    check = ResultCheck(arguments, 0.01)
    check.keep([["c"]])
    assert check.run(lambda: None) == ""
    assert check.run(lambda: None) == ""

    def spoil() -> None:
        arguments["c"][1] = np.nan

    assert "`c` differs" in check.run(spoil)
