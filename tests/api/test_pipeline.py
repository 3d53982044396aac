"""Pipelines by name, and the instruments around a compile."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tests.plugins.mlir_tests import runs_of
from tilewright.compiler import instruments
from tilewright.compiler.named_passes import (
    UnknownPass,
    make_pass,
    parse_pipeline,
    pass_classes,
    run_passes_on_text,
)
from tilewright.compiler.pipeline import PassOrder, full_pipeline
from tilewright.ir.levels import LEVELS
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.machine.gpus import GPUS
from tilewright.machine.model import MachineModel
from tilewright.passes.require_rules import RequireRules
from tilewright.schedule.layout.assign import AssignLayouts
from tilewright.support.dataclass import replace
from tilewright.support.errors import InternalError, InvalidOption, MalformedText
from tilewright.support.options import CompileOptions
from tilewright.targets.target import load_target

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
    assert {"insert-shared-barriers", "split-carried-pointers", "emit-nests"} <= set(classes)
    for name, cls in classes.items():
        has_target = "target" in {field.name for field in fields(cls)}
        made = make_pass(name, "target=cpu" if has_target else "")
        assert made.name == name and cls.__doc__
        assert {made.requires, made.produces} <= set(LEVELS)
        assert set(made.after) <= set(classes) - {name}


def test_every_pass_has_files_of_what_it_changes_and_of_what_it_leaves_or_refuses() -> None:
    folder = Path(__file__).parents[1] / "passes"
    counts = Counter(
        item.name
        for path in folder.rglob("*.mlir")
        for run in runs_of(path.read_text(encoding="utf-8"))
        for item in parse_pipeline(run.passes).passes
    )
    assert {name for name in pass_classes() if counts[name] < 2} == set()


def test_an_empty_pipeline_prints_the_module_again() -> None:
    once = run_passes_on_text(TILE, "")
    assert run_passes_on_text(once, " ") == once


def test_options_reach_the_pass() -> None:
    pipeline = parse_pipeline("assign-layouts{num_warps=8, machine=sm_80}  place-shared")
    assert [item.name for item in pipeline.passes] == ["assign-layouts", "place-shared"]
    assert pipeline.passes[0] == AssignLayouts(GPUS["sm_80"], 8)
    assert pipeline.levels == ("T0r", "T1", "T2")


def test_the_schedule_of_a_target_is_its_passes_for_the_machine_that_the_options_describe() -> None:
    pipeline = parse_pipeline("merge-duplicates schedule{vector_bytes=64, features=avx2+fma}")
    machine = replace(MADE_UP_CPU, vector_bytes=64, features=("+avx2", "+fma"))
    passes = load_target("cpu").schedule(machine, CompileOptions())
    assert pipeline.passes[1:] == (RequireRules("cpu"), *passes)
    assert pipeline.levels[-1] == "C2"


@pytest.mark.parametrize("target", ["cpu", "nvidia"])
@pytest.mark.parametrize("machine", GPUS.values(), ids=list(GPUS))
def test_the_passes_of_every_target_lead_from_t0_to_its_level(
    target: str, machine: MachineModel
) -> None:
    levels = full_pipeline(load_target(target), machine, CompileOptions()).levels
    assert levels[0] == "T0" and levels[-1] == load_target(target).level


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
        ("assign-layouts{machine=sm_42}", InvalidOption, "there is no machine 'sm_42'"),
        ("schedule split-carried-pointers", PassOrder, "takes T0, and the IR is at C2 there"),
        (
            "insert-global-barriers copy-async",
            PassOrder,
            "stands before `copy-async`, whose result it reads",
        ),
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


def test_dump_writes_each_stage_to_a_numbered_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_DUMP_IR", str(tmp_path / "dump"))
    launch()
    (directory,) = (tmp_path / "dump").iterdir()
    names = sorted(path.name for path in directory.iterdir())
    assert directory.name.startswith("fill-")
    assert names[0] == "00-frontend.mlir"
    assert names[-3].endswith("-place-buffers.mlir") and names[-2].endswith("-llir.ll")
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
    for name in ("compile times of fill", "frontend", "emit-nests", "llir", "object", "total"):
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
