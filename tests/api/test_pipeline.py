"""Pipelines by name, and the instruments around a compile."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tilewright.compiler import instruments
from tilewright.compiler.pipeline import (
    PassOrder,
    Pipeline,
    Schedule,
    UnknownPass,
    make_pass,
    parse_pipeline,
    pass_classes,
    run_passes_on_text,
)
from tilewright.ir.levels import LEVELS
from tilewright.support.errors import InternalError, InvalidOption, MalformedText

TILE = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "f", function_type = (!tt.ptr<f32>) -> (), sym_visibility = "public",
                arg_attrs = [{}]}> ({
  ^bb0(%p: !tt.ptr<f32>):
    %x = "tt.load"(%p) <{cache = 1 : i32, evict = 1 : i32, isVolatile = false,
                         operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f32
    "tt.store"(%p, %x) <{cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<f32>, f32) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


@tilewright.jit
def fill(out_ptr, value, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), value)


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    fill.forget()
    return tmp_path / "cache"


def launch() -> None:
    out = np.zeros(64, np.float32)
    fill[(1,)](out, 3.0, BLOCK=64)
    assert (out == 3).all()


def test_every_pass_has_a_name_a_docstring_and_known_levels() -> None:
    classes = pass_classes()
    assert {"schedule", "split-carried-pointers"} <= set(classes)
    for name, cls in classes.items():
        made = make_pass(name)
        assert made.name == name and cls.__doc__
        assert {getattr(made, "requires", "T0"), getattr(made, "produces", "T0")} <= set(LEVELS)


def test_an_empty_pipeline_prints_the_module_again() -> None:
    once = run_passes_on_text(TILE, "")
    assert run_passes_on_text(once, " ") == once


def test_options_reach_the_pass() -> None:
    pipeline = parse_pipeline("split-carried-pointers  schedule{vector_bytes=64, features=avx2}")
    assert [item.name for item in pipeline.passes] == ["split-carried-pointers", "schedule"]
    assert pipeline.passes[1] == Schedule(vector_bytes=64, features="avx2")
    assert pipeline.levels == ("T0", "T0", "C2")


def test_schedule_lowers_text_to_nests() -> None:
    assert "cpu.load" in run_passes_on_text(TILE, "schedule") or "cpu.nest" in (
        run_passes_on_text(TILE, "schedule")
    )


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("gone", UnknownPass, "there is no pass `gone`"),
        ("schedule{", UnknownPass, "cannot be read from"),
        ("schedule{speed=1}", InvalidOption, "pass `schedule` has no option `speed`"),
        ("schedule split-carried-pointers", PassOrder, "takes T0, and the IR is at C2 there"),
    ],
)
def test_wrong_pipelines_are_refused_when_they_are_built(
    text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        parse_pipeline(text)


def test_text_that_is_no_module_is_refused() -> None:
    with pytest.raises(MalformedText):
        run_passes_on_text("module {", "")


class Unlocated:
    """A pass that leaves the module as it is, which has no locations here."""

    name = "unlocated"

    def apply(self, module: ModuleOp) -> None:
        """Do nothing."""


def test_verify_each_checks_the_contract_of_the_level() -> None:
    from tilewright.compiler.pipeline import full_context
    from tilewright.ir.text import parse_module

    module = parse_module(TILE, full_context())
    with pytest.raises(InternalError, match="has no source location"):
        Pipeline((Unlocated(),)).apply(module, verify_each=True)


def test_dump_writes_each_stage_to_a_numbered_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_DUMP_IR", str(tmp_path / "dump"))
    launch()
    (directory,) = (tmp_path / "dump").iterdir()
    names = sorted(path.name for path in directory.iterdir())
    assert directory.name.startswith("fill-")
    assert names[0] == "00-frontend.mlir"
    assert names[-3].endswith("-schedule.mlir") and names[-2].endswith("-llir.ll")
    assert names[-1].endswith("-object")


def test_a_dump_directory_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dump").write_text("")
    monkeypatch.setenv("TILEWRIGHT_DUMP_IR", str(tmp_path / "dump"))
    with pytest.raises(
        tilewright.TilewrightError, match=r"TILEWRIGHT_DUMP_IR: .* cannot be written"
    ):
        launch()


def test_time_passes_prints_every_stage_and_the_total(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TIME_PASSES", "1")
    launch()
    written = capsys.readouterr().err
    for name in ("compile times of fill", "frontend", "schedule", "llir", "object", "total"):
        assert name in written


def test_remarks_are_printed_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def remarked(request, key, observe):
        from tilewright.compiler.compile import compile_request

        artifact = compile_request(request, key, observe)
        return type(artifact)(key, {**artifact.metadata, "remarks": ["slow"]}, artifact.sections)

    monkeypatch.setattr(instruments, "compile_request", remarked)
    monkeypatch.setenv("TILEWRIGHT_PRINT_REMARKS", "1")
    launch()
    assert "remark: fill: slow" in capsys.readouterr().err


def test_a_level_that_a_stage_breaks_is_a_defect_with_a_reproducer(
    monkeypatch: pytest.MonkeyPatch, cache_dir: Path
) -> None:
    def refuse(module: ModuleOp, level: object) -> None:
        raise InternalError("invalid T0: tt.load is no op of this level")

    monkeypatch.setattr(instruments, "verify_level", refuse)
    monkeypatch.setenv("TILEWRIGHT_VERIFY_EACH", "1")
    with pytest.raises(InternalError, match=r"after stage `frontend`: invalid T0: tt\.load"):
        launch()
    (path,) = (cache_dir / "reproducers").glob("fill-*.reproducer")
    assert json.loads(path.read_bytes())["stage"] == "frontend"
