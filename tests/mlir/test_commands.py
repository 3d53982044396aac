"""The commands for the target: text without any tool, an account of accesses, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tilewright.tools.main import tool

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "vector_add.py")
DESCRIBED = ["x_ptr=*fp32:16", "y_ptr=*fp32:16", "out_ptr=*fp32:16", "size=i32", "BLOCK=64"]
ARGUMENTS = [word for text in DESCRIBED for word in ("--arg", text)]


def said(*words: str) -> str:
    result = CliRunner().invoke(tool, [*words, *ARGUMENTS], catch_exceptions=False)
    return result.output


@pytest.fixture(autouse=True)
def without_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_MLIR_OPT", str(tmp_path / "none"))


def test_the_text_is_printed_without_any_tool() -> None:
    text = said("compile", f"{EXAMPLE}:add_kernel", "--target", "mlir", "--emit", "linalg")
    assert text.startswith("module {") and text.rstrip().endswith("}")
    assert "func.func @add_kernel(%a0: memref<?xf32>" in text
    assert "scf.parallel" not in text


def test_a_loop_over_the_grid_is_asked_for() -> None:
    text = said("compile", f"{EXAMPLE}:add_kernel", "--target", "mlir", "--grid-loop")
    assert "scf.parallel" in text and "func.func private @add_kernel_program" in text


def test_the_other_forms_name_the_tool_that_they_lack() -> None:
    result = CliRunner().invoke(
        tool, ["compile", f"{EXAMPLE}:add_kernel", "--target", "mlir", "--emit", "llvm", *ARGUMENTS]
    )
    assert result.exit_code != 0
    assert "TILEWRIGHT_MLIR_OPT is" in str(result.output) + str(result.exception)


def test_explain_counts_views() -> None:
    text = said("explain", f"{EXAMPLE}:add_kernel", "--target", "mlir")
    assert "3 loads and stores of tiles are views of memory, 0 go element by element" in text


def test_a_form_of_another_target_is_refused() -> None:
    result = CliRunner().invoke(
        tool, ["compile", f"{EXAMPLE}:add_kernel", "--emit", "linalg", *ARGUMENTS]
    )
    assert result.exit_code != 0
    assert "go with --target mlir" in str(result.output) + str(result.exception)


def test_a_schedule_is_asked_for() -> None:
    text = said("compile", f"{EXAMPLE}:add_kernel", "--target", "mlir", "--schedule", "cpu")
    assert "func.func @add_kernel" in text and "transform.structured.vectorize" in text


LOOKS_UP = """
import tilewright
import tilewright.language as tl

@tilewright.jit
def looks_up(x, index, out):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + tl.load(index + at)))
"""


@pytest.mark.parametrize("more", [(), ("--emit", "linalg")], ids=["account", "text"])
def test_an_access_by_elements_is_a_remark_of_the_command(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "lookup.py"
    file.write_text(LOOKS_UP, encoding="utf-8")
    described = [f"--arg={text}" for text in ("x=*fp32", "index=*i32", "out=*fp32")]
    result = CliRunner().invoke(
        tool, ["compile", f"{file}:looks_up", "--target", "mlir", *described, *more]
    )
    assert f"remark: {file}:8, col 24: this load goes element by element: dimension 0" in (
        result.output if not more else result.stderr
    )
