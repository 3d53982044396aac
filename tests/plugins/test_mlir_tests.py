"""The collector of filecheck files, tested on a pipeline that needs no compiler."""

from __future__ import annotations

import pytest

from tests.plugins import mlir_tests
from tests.plugins.goldens import check_golden
from tests.plugins.mlir_tests import Mismatch, Run, execute, pieces_of, runs_of


@pytest.fixture
def shouting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline whose only pass turns the module to capitals."""

    def run(text: str, passes: str, name: str = "") -> str:
        if passes == "refuse":
            raise ValueError("refused: too loud")
        return text.upper() if passes else text.strip()

    monkeypatch.setattr(mlir_tests, "run_pipeline", run)


def test_header_lines_become_runs_in_order() -> None:
    text = "// PASS: a b{x=1}\n// PASS(TIGHT): c\n// ROUNDTRIP\n// ERROR: d\nmodule {}\n"
    assert runs_of(text) == [
        Run("PASS", "CHECK", "a b{x=1}"),
        Run("PASS", "TIGHT", "c"),
        Run("ROUNDTRIP", "CHECK", ""),
        Run("ERROR", "CHECK", "d"),
    ]


@pytest.mark.usefixtures("shouting")
def test_output_that_satisfies_the_checks_passes() -> None:
    execute(Run("PASS", "CHECK", "shout"), "add mul\n// CHECK: ADD\n// CHECK-SAME: MUL\n", "x.mlir")


@pytest.mark.usefixtures("shouting")
def test_output_that_misses_a_check_fails_and_shows_the_output() -> None:
    with pytest.raises(Mismatch, match="ADD MUL"):
        execute(Run("PASS", "CHECK", "shout"), "add mul\n// CHECK: {{S}}UB\n", "x.mlir")


@pytest.mark.usefixtures("shouting")
def test_each_prefix_checks_its_own_lines() -> None:
    execute(Run("PASS", "TIGHT", "shout"), "add\n// CHECK: SUB\n// TIGHT: ADD\n", "x.mlir")


@pytest.mark.usefixtures("shouting")
def test_error_run_checks_the_message() -> None:
    execute(Run("ERROR", "CHECK", "refuse"), "add\n// CHECK: refused: too loud\n", "x.mlir")


@pytest.mark.usefixtures("shouting")
def test_error_run_fails_when_nothing_is_raised() -> None:
    with pytest.raises(Mismatch, match="no error was raised"):
        execute(Run("ERROR", "CHECK", "shout"), "add\n// CHECK: refused\n", "x.mlir")


def test_each_input_of_a_file_keeps_its_line_numbers() -> None:
    first, second = pieces_of("one\ntwo\n// -----\nfour\n")
    assert first == "one\ntwo\n"
    assert second.split("\n")[3] == "four"


@pytest.mark.usefixtures("shouting")
def test_roundtrip_reports_a_print_that_is_no_fixed_point(monkeypatch: pytest.MonkeyPatch) -> None:
    execute(Run("ROUNDTRIP", "CHECK", ""), "add\n", "x.mlir")
    monkeypatch.setattr(mlir_tests, "run_pipeline", lambda text, passes: text + "x")
    with pytest.raises(Mismatch, match="second print differs"):
        execute(Run("ROUNDTRIP", "CHECK", ""), "add\n", "x.mlir")


def test_golden_is_written_by_bless_and_compared_without(tmp_path) -> None:
    path = tmp_path / "golden.txt"
    with pytest.raises(pytest.fail.Exception, match="no golden file"):
        check_golden(path, "one", bless=False)
    check_golden(path, "one", bless=True)
    check_golden(path, "one\n", bless=False)
    with pytest.raises(AssertionError, match="accept with --bless"):
        check_golden(path, "two", bless=False)
