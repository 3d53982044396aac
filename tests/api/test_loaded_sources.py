"""What is compiled is the text that was loaded, and never text that something replaced."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tests.api.alias  # noqa: F401 - puts `triton` on the path
import tilewright
import tilewright.language as tl
from tilewright.support.errors import UndefinedName

import triton  # isort: skip

MODULE = """\
import tilewright
import tilewright.language as tl

@tilewright.constexpr_function
def width():
    return 16

@tilewright.jit
def helper(x):
    return x * 2

@tilewright.jit
def kernel(x, out):
    at = tl.arange(0, width())
    tl.store(out + at, helper(tl.load(x + at)) + 1)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes and imports modules of their own; gives `(load, edit)`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"loaded_{tmp_path.name}"
    path = tmp_path / f"{name}.py"

    def edit(text: str) -> None:
        path.write_text(text)
        # Two texts of one size within one tick of the clock are told apart by nobody.
        os.utime(path, ns=(0, path.stat().st_mtime_ns + len(edits) * 10**9))
        edits.append(text)
        importlib.invalidate_caches()

    def load(text: str) -> ModuleType:
        edit(text)
        return importlib.import_module(name)

    edits: list[str] = []
    yield load, edit
    sys.modules.pop(name, None)


def result_of(kernel: Callable[..., object]) -> float:
    x, out = np.full(16, 3.0, np.float32), np.zeros(16, np.float32)
    kernel[(1,)](x, out)
    assert len(set(out.tolist())) == 1
    return float(out[0])


@pytest.mark.parametrize(
    "edited",
    [
        MODULE.replace("* 2", "* 5"),
        MODULE.replace("+ 1", "+ 4"),
        MODULE.replace("16", "1"),
        "import os\nimport sys\n\n" + MODULE.replace("* 2", "* 5"),
        MODULE.replace("def kernel", "def another"),
        "",
    ],
)
def test_a_file_edited_before_the_first_launch_runs_as_it_was_loaded(module, edited) -> None:
    load, edit = module
    loaded = load(MODULE)
    edit(edited)
    linecache.checkcache()
    assert result_of(loaded.kernel) == 7


def test_a_file_removed_before_the_first_launch_runs_as_it_was_loaded(module, tmp_path) -> None:
    loaded = module[0](MODULE)
    Path(loaded.__file__).unlink()
    linecache.clearcache()
    assert result_of(loaded.kernel) == 7


def test_a_reloaded_module_runs_its_new_text(module) -> None:
    load, edit = module
    loaded = load(MODULE)
    assert result_of(loaded.kernel) == 7
    edit(MODULE.replace("* 2", "* 5"))
    assert result_of(loaded.kernel) == 7
    assert result_of(importlib.reload(loaded).kernel) == 16


def test_a_kernel_runs_the_new_text_of_a_callee_whose_module_is_reloaded(module) -> None:
    load, edit = module
    loaded = load(MODULE)
    caller = caller_of(loaded)
    kept = caller[(1,)]
    assert result_of(caller) == 6
    edit(MODULE.replace("* 2", "* 5"))
    importlib.reload(loaded)
    assert result_of(caller) == 15
    x, out = np.full(16, 3.0, np.float32), np.zeros(16, np.float32)
    kept(x, out)
    assert out[0] == 15


def caller_of(library):
    @tilewright.jit
    def caller(x, out):
        at = tl.arange(0, library.width())
        tl.store(out + at, library.helper(tl.load(x + at)))

    return caller


# Sources that are in no file, as notebooks and generators of code have them.


def run_cell(number: int, text: str, namespace: dict[str, object]) -> None:
    """Run a text as a notebook runs a cell: under a name of its own, known to `linecache`."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), namespace)


HEAD = "import tilewright\nimport tilewright.language as tl\n"
HELPER = "@tilewright.jit\ndef helper(x):\n    return x * {}\n"
FACTOR = "@tilewright.constexpr_function\ndef factor():\n    return {}\n"
CALLER = (
    "@tilewright.jit\ndef kernel(x, out):\n    at = tl.arange(0, 16)\n    tl.store(out + at, {})\n"
)


@pytest.mark.parametrize(
    ("definition", "use"),
    [(HELPER, "helper(tl.load(x + at))"), (FACTOR, "tl.load(x + at) * factor()")],
)
def test_a_cell_that_is_run_again_replaces_the_function_in_kernels(definition, use) -> None:
    cells: dict[str, object] = {"__name__": "__notebook__"}
    run_cell(1, HEAD + definition.format(2), cells)
    run_cell(2, CALLER.format(use), cells)
    assert result_of(cells["kernel"]) == 6
    assert result_of(cells["kernel"]) == 6
    run_cell(3, definition.format(7), cells)
    assert result_of(cells["kernel"]) == 21
    assert result_of(cells["kernel"]) == 21


# A name for a function that a kernel calls, and what is assigned to it later.
OTHER = "@tilewright.jit\ndef other(x):\n    return x * 7\n"
CALLED_LATER = [
    ("chosen = helper", "chosen = other"),
    ("chosen = functools.partial(scaled, k=2)", "chosen = functools.partial(scaled, k=7)"),
    ("class Choice:\n    chosen = staticmethod(helper)", "Choice.chosen = other"),
]


@pytest.mark.parametrize(("before", "after"), CALLED_LATER)
def test_a_name_that_is_assigned_another_function_calls_that_one(before: str, after: str) -> None:
    cells: dict[str, object] = {"__name__": "__notebook__"}
    scaled = "@tilewright.jit\ndef scaled(x, k):\n    return x * k\n"
    text = f"{HEAD}import functools\n{HELPER.format(2)}{OTHER}{scaled}{before}\n"
    run_cell(10, text, cells)
    called = "Choice.chosen" if "Choice" in before else "chosen"
    run_cell(11, CALLER.format(f"{called}(tl.load(x + at))"), cells)
    assert result_of(cells["kernel"]) == 6
    assert result_of(cells["kernel"]) == 6
    run_cell(12, after, cells)
    assert result_of(cells["kernel"]) == 21
    assert result_of(cells["kernel"]) == 21


def test_a_variable_of_a_closure_that_is_assigned_another_function_calls_that_one() -> None:
    @tilewright.jit
    def doubled(x):
        return x * 2

    @tilewright.jit
    def tripled(x):
        return x * 3

    chosen = doubled

    @tilewright.jit
    def kernel(x, out):
        at = tl.arange(0, 16)
        tl.store(out + at, chosen(tl.load(x + at)))

    assert result_of(kernel) == result_of(kernel) == 6
    chosen = tripled
    assert result_of(kernel) == result_of(kernel) == 9


def test_a_callee_may_be_defined_after_a_launch_that_missed_it() -> None:
    cells: dict[str, object] = {"__name__": "__notebook__"}
    run_cell(4, HEAD + CALLER.format("helper(tl.load(x + at))"), cells)
    with pytest.raises(UndefinedName):
        result_of(cells["kernel"])
    run_cell(5, HELPER.format(2), cells)
    assert result_of(cells["kernel"]) == 6


def test_a_global_may_be_declared_constexpr_after_a_launch_that_asked_for_it() -> None:
    cells: dict[str, object] = {"__name__": "__notebook__", "N": 3}
    run_cell(6, HEAD + CALLER.format("tl.load(x + at) + N"), cells)
    with pytest.raises(tilewright.CompileError):
        result_of(cells["kernel"])
    cells["N"] = tl.constexpr(3)
    assert result_of(cells["kernel"]) == 6


def test_the_text_of_a_generated_source_is_the_one_that_was_there_when_it_was_made() -> None:
    cells: dict[str, object] = {"__name__": "__generated__"}
    run_cell(7, HEAD + CALLER.format("tl.load(x + at)"), cells)
    first = cells["kernel"]
    run_cell(7, HEAD + CALLER.format("tl.load(x + at) * 9"), cells)
    assert result_of(first) == 3
    assert result_of(cells["kernel"]) == 27


# Sources that a program replaces.


def test_replacing_the_source_of_a_callee_replaces_what_its_callers_run() -> None:
    @triton.jit
    def helper(x):
        return x * 2

    @triton.jit
    def captures(x, out):
        at = tl.arange(0, 16)
        tl.store(out + at, helper(tl.load(x + at)))

    @triton.jit
    def takes(x, out, f: tl.constexpr):
        at = tl.arange(0, 16)
        tl.store(out + at, f(tl.load(x + at)))

    def both() -> tuple[float, float]:
        x, out = np.full(16, 3.0, np.float32), np.zeros(16, np.float32)
        takes[(1,)](x, out, helper)
        return result_of(captures), float(out[0])

    assert both() == both() == (6, 6)
    key = captures.cache_key
    helper._unsafe_update_src(helper.src.replace("* 2", "* 5"))
    assert both() == both() == (15, 15)
    assert captures.cache_key != key


def test_parameters_are_known_before_the_callees_are_defined() -> None:
    cells: dict[str, object] = {"__name__": "__notebook__"}
    head = "import triton\nimport triton.language as tl\n"
    text = head + CALLER.replace("tilewright.jit", "triton.jit").format("helper(tl.load(x + at))")
    run_cell(8, text, cells)
    kernel = cells["kernel"]
    assert [p.name for p in kernel.params] == kernel.arg_names == ["x", "out"]
    assert list(kernel.signature.parameters) == ["x", "out"]
    assert kernel.constexprs == []
    run_cell(9, HELPER.replace("tilewright.jit", "triton.jit").format(2), cells)
    assert result_of(kernel) == 6
