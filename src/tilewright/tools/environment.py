"""`tilewright env`: versions, the machine, and every variable that is read."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from functools import partial

import click

import tilewright
from tilewright.compiler.reproducer import current_versions
from tilewright.runtime.cache import open_default
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.fingerprint import usable_cpu_count
from tilewright.support.environment import VARIABLES, Variable, is_set
from tilewright.support.errors import TilewrightError
from tilewright.targets.nvidia.toolchain import find_assembler, find_tool
from tilewright.targets.target import TARGETS
from tilewright.tools.show import echo_table, size_text

Row = tuple[str, str]


@click.command()
def env() -> None:
    """Print versions, the machine's features and every environment variable."""
    versions = {**current_versions(), "tilewright": tilewright.__version__}
    versions["platform"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    versions["python"] = f"{versions['python']} ({sys.executable})"
    echo_table(("versions", ""), list(versions.items()))
    for target in TARGETS:
        click.echo()
        echo_table((f"target {target}", ""), _rows(partial(_machine_rows, target)))
    click.echo()
    echo_table(("tools for NVIDIA GPUs", ""), _rows(_tool_rows))
    click.echo()
    echo_table(("cache", ""), _rows(_cache_rows))
    click.echo()
    echo_table(("variable", "value", "meaning"), [_variable_row(v) for v in VARIABLES])


def _rows(make: Callable[[], list[Row]]) -> list[Row]:
    """The rows, or why there are none: this command must work where others fail."""
    try:
        return make()
    except TilewrightError as error:
        return [("unknown", f"{error.summary}; {error.hint}")]


def _cache_rows() -> list[Row]:
    store = open_default()
    return [
        ("directory", str(store.directory or "none: kernels are kept in memory")),
        ("limit", size_text(store.size_limit_bytes)),
    ]


def _machine_rows(target: str) -> list[Row]:
    machine = load_driver(target).machine().to_features()
    rows = [("usable CPUs", str(usable_cpu_count()))] if target == "cpu" else []
    for name, value in machine.items():
        if not value:
            continue  # what the machine has not
        if name == "features":
            on = [f[1:] for f in str(value).split(",") if f.startswith("+")]
            rows.append((name, " ".join(on)))
        elif name.endswith("_bytes"):
            rows.append((name.removesuffix("_bytes"), size_text(int(value or 0))))
        else:
            rows.append((name, str(value)))
    return rows


def _tool_rows() -> list[Row]:
    """Which programs of the CUDA toolkit would be run."""
    assembler = find_assembler()
    found = [("ptxas", f"{assembler.version} ({assembler.path})")]
    disassembler = find_tool("nvdisasm") or find_tool("cuobjdump")
    return [*found, ("disassembler", str(disassembler or "none"))]


def _variable_row(variable: Variable[object]) -> tuple[str, str, str]:
    try:
        value = str(variable.read()) if is_set(variable) else f"({variable.show_default()})"
    except TilewrightError as error:
        value = f"invalid: {error.hint}"
    return variable.name, value, variable.meaning
