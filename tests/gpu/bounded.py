"""A program of others, as it is, with its benchmarks cut short and its tuning reported.

    python -m tilewright run tests/gpu/bounded.py [--points N] [--tests WORDS] PROGRAM [ARGUMENTS]

Sweeps of `perf_report` measure N points (the smallest and the largest for 2) and draw nothing.
Each tuning prints how long it took. With `--tests` the program's own pytest tests run too: all
for an empty text, else those that pytest's `-k` chooses. With `--wide` it is torch's CPU whose
coarse results do not count. It ends with 1 when the program raises, prints "❌", or a test fails.
"""

from __future__ import annotations

import io
import runpy
import sys
import tempfile
import time
import types
from dataclasses import replace
from pathlib import Path

import click

_WRONG = "❌"


class Watched(io.TextIOBase):
    """A text stream that remembers whether a mark went through it."""

    def __init__(self, inner: io.TextIOBase, mark: str) -> None:
        self.inner, self.mark, self.found = inner, mark, 0

    def write(self, text: str) -> int:
        """Pass on, and count."""
        self.found += text.count(self.mark)
        return self.inner.write(text)

    def flush(self) -> None:
        """Pass on."""
        self.inner.flush()


def chosen(values: list[object], count: int) -> list[object]:
    """`count` of the values, the first and the last among them."""
    if count >= len(values):
        return values
    if count < 2:
        return values[:count]
    return [values[i * (len(values) - 1) // (count - 1)] for i in range(count)]


def bound_benchmarks(count: int) -> None:
    """Make `perf_report` measure `count` points of each sweep, without plots."""
    import tilewright.testing.report as report

    run = report.Mark.run

    def shorter(self: report.Mark, *args: object, **kwargs: object) -> object:
        benchmarks = tuple(
            replace(b, x_vals=chosen(list(b.x_vals), count)) for b in self.benchmarks
        )
        return run(replace(self, benchmarks=benchmarks), print_data=True) if count else None

    report.Mark.run = shorter


def report_tuning() -> None:
    """Print the seconds of each tuning, and its winner."""
    from triton import knobs

    def listen(*, fn: object, duration: float | None, cache_hit: bool, **rest: object) -> None:
        timings = rest["configs_timings"]
        name = getattr(fn, "__name__", str(fn))
        spent = "from the disk" if cache_hit else f"{duration:.2f} s"
        print(
            f"[tuned] {name}: {len(timings)} configurations, {spent}, best {rest['best_config']}",
            flush=True,
        )

    knobs.autotuning.listener = listen


def widen_references() -> None:
    """Let torch's CPU be compared with where its own results are coarse or one of two roundings.

    Gradients of float16 `layer_norm` are summed in float16 there (0.06 off for 1151 rows): they
    are computed in float32. Products of float16 that are summed in another order round to the
    neighbour now and then, also those nearer to float64: `allclose` lets one step of float16 pass.
    """
    import torch

    layer_norm, allclose = torch.nn.functional.layer_norm, torch.allclose

    def wide(x: torch.Tensor, shape: object, *rest: object) -> torch.Tensor:
        given = [r.float() if isinstance(r, torch.Tensor) else r for r in rest]
        return layer_norm(x.float(), shape, *given).to(x.dtype)

    def close(x: torch.Tensor, y: torch.Tensor, rtol: float = 1e-5, **rest: float) -> bool:
        step = 2.0**-10 if x.dtype == torch.float16 else 0.0
        return allclose(x, y, rtol=max(rtol, step), **rest)

    torch.nn.functional.layer_norm, torch.allclose = wide, close


def serve_tabulate() -> None:
    """A stand-in for a package that draws tables, where it is not installed."""
    try:
        import tabulate  # noqa: F401
    except ImportError:
        module = types.ModuleType("tabulate")
        module.tabulate = lambda rows: "\n".join(str(row) for row in rows)
        sys.modules["tabulate"] = module


def run_tests(program: Path, words: str) -> int:
    """The program's own tests; 1 when one fails."""
    import pytest

    words_given = ["-k", words] if words else []
    with tempfile.TemporaryDirectory() as folder:
        # Settings of this repository are none of the program's.
        settings = Path(folder) / "pytest.ini"
        settings.write_text("[pytest]\n", encoding="utf-8")
        code = pytest.main(
            ["-q", "--maxfail=5", "--tb=short", "-p", "no:cacheprovider", "-c", str(settings),
             "--rootdir", folder, "-W", "ignore", *words_given, str(program)]
        )  # fmt: skip
    return 0 if code == 0 else 1


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--points", default=2, help="Points measured of each sweep.")
@click.option("--tests", default=None, help="Run the program's tests that these words choose.")
@click.option("--wide", is_flag=True, help="Compare with float32 where torch's CPU is coarse.")
@click.argument("program", type=click.Path(path_type=Path, exists=True))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(
    points: int, tests: str | None, wide: bool, program: Path, arguments: tuple[str, ...]
) -> None:
    """Run PROGRAM as it is, bounded in time."""
    if wide:
        widen_references()
    bound_benchmarks(points)
    report_tuning()
    serve_tabulate()
    program = program.resolve()
    sys.path.insert(0, str(program.parent))
    failed = 0
    started = time.perf_counter()
    if tests is not None and "def test_op" in program.read_text(encoding="utf-8"):
        failed += run_tests(program, tests)
        print(f"[tests] {time.perf_counter() - started:.1f} s", flush=True)
    started, sys.argv = time.perf_counter(), [str(program), *arguments]
    watched = Watched(sys.stdout, _WRONG)
    sys.stdout = watched
    try:
        runpy.run_path(str(program), run_name="__main__")
    finally:
        sys.stdout = watched.inner
        print(f"[program] {time.perf_counter() - started:.1f} s", flush=True)
    if watched.found:
        print(f"{watched.found} results are marked wrong by the program", flush=True)
    sys.exit(1 if failed or watched.found else 0)


if __name__ == "__main__":
    main()
