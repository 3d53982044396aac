"""`perf_report`: a function measured over sizes and variants, as a table and a plot.

No table package is needed to print or save; matplotlib (the extra `plot`) draws the plots and
pandas is used only by who asks for data frames.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import ModuleType

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError

Row = tuple[object, ...]
Measurement = float | tuple[float, float, float] | list[float]


@dataclass(frozen=True)
class Benchmark:
    """One plot: what varies along x, which lines there are, and what is held constant.

    `x_names` get each value of `x_vals` (a tuple gives each name its own); `line_arg` gets
    each of `line_vals`, shown as `line_names`; `args` are passed to every call.
    """

    x_names: Sequence[str]
    x_vals: Sequence[object]
    line_arg: str
    line_vals: Sequence[object]
    line_names: Sequence[str]
    plot_name: str
    args: Mapping[str, object] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None

    def points(self) -> list[dict[str, object]]:
        """The x arguments of every row, by name."""
        rows = [x if isinstance(x, tuple | list) else [x] * len(self.x_names) for x in self.x_vals]
        for row in rows:
            if len(row) != len(self.x_names):
                raise ValueError(f"{self.plot_name}: {row!r} does not fit {list(self.x_names)}")
        return [dict(zip(self.x_names, row, strict=True)) for row in rows]


@dataclass(frozen=True)
class Table:
    """What one benchmark measured; every line has a value, a least and a greatest."""

    benchmark: Benchmark
    rows: tuple[Row, ...]
    ranges: tuple[tuple[tuple[float, float], ...], ...]

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns: the x arguments, then the lines."""
        unit = f" ({self.benchmark.ylabel})" if self.benchmark.ylabel else ""
        return (*self.benchmark.x_names, *(f"{name}{unit}" for name in self.benchmark.line_names))

    def to_text(self) -> str:
        """The table with aligned columns."""
        cells = [self.header, *(tuple(_show(value) for value in row) for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.header))]
        lines = ("  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in cells)
        return "\n".join((f"{self.benchmark.plot_name}:", *lines))

    def to_csv(self) -> str:
        """The table as comma-separated values with a header."""
        lines = [self.header, *self.rows]
        return "".join(",".join(_quote(str(cell)) for cell in row) + "\n" for row in lines)


def _show(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _quote(text: str) -> str:
    if not set(text) & set(',"\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


@dataclass(frozen=True)
class Mark:
    """A function with the benchmarks to run it under; made by `perf_report`."""

    fn: Callable[..., Measurement]
    benchmarks: tuple[Benchmark, ...]
    is_single: bool = False

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        return_df: bool = False,
        **kwargs: object,
    ) -> object:
        """Measure everything; print, draw, save or return it as asked.

        `save_path` is a directory that gets `<plot_name>.csv` and `.png`. `kwargs` are passed
        to every call of the function. The result is None, or with `return_df` one data frame
        (a list of them for a list of benchmarks).

        Raises: `UnsupportedError` where matplotlib or pandas is needed and missing.
        """
        plot = _load("matplotlib.pyplot", "plot") if show_plots or save_path else None
        pandas = _load("pandas", "") if return_df else None
        tables: list[Table] = []
        for benchmark in self.benchmarks:
            table = _measure(self.fn, benchmark, kwargs)
            tables.append(table)
            if print_data:
                print(table.to_text())
            if plot is not None:
                _draw(plot, table, show_plots, save_path)
            if save_path:
                _save(Path(save_path), table)
        if pandas is None:
            return None
        frames = [pandas.DataFrame(list(t.rows), columns=list(t.header)) for t in tables]
        return frames[0] if self.is_single else frames


def perf_report(
    benchmarks: Benchmark | Iterable[Benchmark],
) -> Callable[[Callable[..., Measurement]], Mark]:
    """A decorator that makes a `Mark` of a function, to be measured by its `run`.

    The function returns one number, or a value with its least and its greatest.
    """
    is_single = isinstance(benchmarks, Benchmark)
    listed = (benchmarks,) if isinstance(benchmarks, Benchmark) else tuple(benchmarks)
    return lambda fn: Mark(fn, listed, is_single)


def _measure(
    fn: Callable[..., Measurement], benchmark: Benchmark, kwargs: Mapping[str, object]
) -> Table:
    rows: list[Row] = []
    ranges: list[tuple[tuple[float, float], ...]] = []
    for point in benchmark.points():
        found = [
            _triple(fn(**point, **{benchmark.line_arg: line}, **benchmark.args, **kwargs))
            for line in benchmark.line_vals
        ]
        rows.append((*point.values(), *(value for value, _, _ in found)))
        ranges.append(tuple((low, high) for _, low, high in found))
    return Table(benchmark, tuple(rows), tuple(ranges))


def _triple(result: Measurement) -> tuple[float, float, float]:
    if isinstance(result, tuple | list):
        value, low, high = result
        return float(value), float(low), float(high)
    return float(result), float(result), float(result)


def _load(module: str, extra: str) -> ModuleType:
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError:
        what = f"tilewright[{extra}]" if extra else package
        raise UnsupportedError(
            f"perf_report needs {package} for this, which is not installed",
            hint=f"pip install '{what}'",
        ) from None


def _draw(plot: ModuleType, table: Table, is_shown: bool, save_path: str | Path) -> None:
    """One figure: a line a variant over the first x argument, with its range shaded."""
    benchmark = table.benchmark
    figure, axes = plot.subplots()
    x = [row[0] for row in table.rows]
    for index, name in enumerate(benchmark.line_names):
        color, style = benchmark.styles[index] if benchmark.styles else (None, None)
        y = [row[len(benchmark.x_names) + index] for row in table.rows]
        (line,) = axes.plot(x, y, label=name, color=color, linestyle=style or "-")
        low, high = zip(*(ranges[index] for ranges in table.ranges), strict=True)
        axes.fill_between(x, low, high, alpha=0.15, color=line.get_color())
    axes.legend()
    axes.set_xlabel(benchmark.xlabel or benchmark.x_names[0])
    axes.set_ylabel(benchmark.ylabel)
    axes.set_xscale("log" if benchmark.x_log else "linear")
    axes.set_yscale("log" if benchmark.y_log else "linear")
    if save_path and benchmark.plot_name:
        Path(save_path).mkdir(parents=True, exist_ok=True)
        figure.savefig(Path(save_path, f"{benchmark.plot_name}.png"))
    if is_shown:
        plot.show()
    plot.close(figure)


def _save(directory: Path, table: Table) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{table.benchmark.plot_name or 'results'}.csv"
    path.write_text(table.to_csv(), encoding="utf-8")
