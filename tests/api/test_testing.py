"""`tilewright.testing`: comparison, timing, reports."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime.timer import last_level_cache_bytes, quantile
from tilewright.support.errors import InvalidOption, UnsupportedError
from tilewright.testing import Benchmark, assert_close, do_bench, perf_report


def test_close_arrays_pass_with_nan_and_infinity_on_both_sides() -> None:
    x = np.array([1.0, np.nan, np.inf, -np.inf])
    assert_close(x, x.copy())
    assert_close(x.astype(np.float32), x, atol=0)
    assert_close([1.0, 2.0], (1.005, 2.0))


def test_the_message_names_the_worst_element() -> None:
    x, y = np.zeros((2, 3)), np.zeros((2, 3))
    x[1, 2], x[0, 1] = 0.5, 0.1
    with pytest.raises(AssertionError) as caught:
        assert_close(x, y, err_msg="softmax")
    assert str(caught.value) == (
        "softmax\n2 of 6 elements differ (33.3 %)\n  worst at [1, 2]: got 0.5, expected 0.0\n"
        "  difference 0.5, allowed 0.01 (atol 0.01, rtol 0)"
    )


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_not_finite_on_one_side_is_the_worst(odd: float) -> None:
    with pytest.raises(AssertionError, match=r"worst at \[1\]"):
        assert_close(np.array([100.0, odd]), np.zeros(2))


def test_rtol_scales_with_the_expected_value() -> None:
    assert_close(np.array([101.0]), np.array([100.0]), atol=0, rtol=0.011)
    with pytest.raises(AssertionError):
        assert_close(np.array([101.0]), np.array([100.0]), atol=0, rtol=0.009)


def test_shapes_that_differ_are_refused_and_scalars_broadcast() -> None:
    with pytest.raises(AssertionError, match=r"shapes \(2,\) and \(3,\) differ"):
        assert_close(np.zeros(2), np.zeros(3))
    assert_close(np.zeros(3), 0.0)


def test_bfloat16_arrays_are_compared_by_value() -> None:
    assert_close(np.ones(2, ml_dtypes.bfloat16), np.ones(2))


def test_tensors_are_detached_and_widened() -> None:
    class Tensor:
        dtype = "torch.bfloat16"

        def detach(self) -> Tensor:
            return self

        def cpu(self) -> Tensor:
            return self

        def float(self) -> np.ndarray:
            return np.ones(2)

    assert_close(Tensor(), np.ones(2))


def bench(fn, **settings: object) -> object:
    return do_bench(fn, warmup=0, rep=2, flush_cache=False, **settings)


def test_do_bench_returns_milliseconds_in_the_mode_asked_for() -> None:
    times = bench(lambda: sum(range(1000)), return_mode="all")
    assert isinstance(times, list) and all(0 < t < 100 for t in times)
    for mode in ("min", "max", "mean", "median"):
        assert isinstance(bench(lambda: None, return_mode=mode), float)


def test_do_bench_returns_quantiles_in_order() -> None:
    low, middle, high = bench(lambda: None, quantiles=[0.2, 0.5, 0.8])
    assert low <= middle <= high
    assert isinstance(bench(lambda: None, quantiles=[0.5]), float)


def test_do_bench_drops_gradients_and_prepares_before_every_run() -> None:
    tensor, prepared, runs = SimpleNamespace(grad=1), [], []

    def fn() -> None:
        runs.append(tensor.grad)
        tensor.grad = 1

    bench(fn, grad_to_none=[tensor], prepare=lambda: prepared.append(1))
    assert runs[0] == 1 and set(runs[1:]) == {None}
    assert len(prepared) == len(runs) - 1


def test_do_bench_flushes_the_cache_between_runs() -> None:
    assert do_bench(lambda: None, warmup=0, rep=1) >= 0
    assert last_level_cache_bytes() >= 1 << 18


def test_do_bench_refuses_an_unknown_mode_and_quantile() -> None:
    with pytest.raises(InvalidOption, match="return_mode is 'avg'"):
        bench(lambda: None, return_mode="avg")
    with pytest.raises(InvalidOption, match="not all in 0 to 1"):
        bench(lambda: None, quantiles=[50])


def test_quantile_is_linear_between_the_nearest_values() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0, 2.0], 0.25) == 1.25
    assert quantile([5.0], 0.9) == 5.0


def report(**changes: object) -> Benchmark:
    fields = {
        "x_names": ["n"],
        "x_vals": [2, 4],
        "line_arg": "kind",
        "line_vals": ["a", "b"],
        "line_names": ["A", "B"],
        "plot_name": "speed",
        "args": {"scale": 10},
        "ylabel": "GB/s",
        **changes,
    }
    return Benchmark(**fields)


def speed(n: int, kind: str, scale: int) -> float | tuple[float, float, float]:
    value = float(n * scale + (kind == "b"))
    return value if kind == "a" else (value, value - 1, value + 1)


def test_report_prints_an_aligned_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert perf_report(report())(speed).run(print_data=True) is None
    assert capsys.readouterr().out == (
        "speed:\nn  A (GB/s)  B (GB/s)\n2        20        21\n4        40        41\n"
    )


def test_report_passes_each_name_its_own_value_of_a_tuple() -> None:
    seen: list[tuple[int, int]] = []

    def fn(m: int, n: int, kind: str) -> float:
        seen.append((m, n))
        return 0.0

    perf_report([report(x_names=["m", "n"], x_vals=[(1, 2), 3], args={})])(fn).run()
    assert seen == [(1, 2), (1, 2), (3, 3), (3, 3)]


def test_report_refuses_a_tuple_of_another_length() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        perf_report(report(x_vals=[(1, 2)]))(speed).run()


def test_report_saves_table_and_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    styled = report(x_log=True, styles=[("blue", "-"), ("green", "--")])
    perf_report(styled)(speed).run(save_path=tmp_path / "out")
    assert (tmp_path / "out/speed.csv").read_text() == (
        "n,A (GB/s),B (GB/s)\n2,20.0,21.0\n4,40.0,41.0\n"
    )
    assert (tmp_path / "out/speed.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("missing", "asked", "remedy"),
    [
        ("matplotlib", {"show_plots": True}, r"pip install 'tilewright\[plot\]'"),
        ("pandas", {"return_df": True}, "pip install 'pandas'"),
    ],
)
def test_a_missing_package_is_named_with_its_remedy(
    missing: str, asked: dict, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, package: str | None = None) -> object:
        raise ImportError(name)

    monkeypatch.setattr("tilewright.testing.report.importlib.import_module", refuse)
    with pytest.raises(UnsupportedError, match=f"(?s)needs {missing}.*{remedy}"):
        perf_report(report())(speed).run(**asked)
