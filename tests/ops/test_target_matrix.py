"""Every op of the language × every target: it is lowered, or refused in a sentence."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from tests.ops.kernels import kernel_text
from tests.ops.test_matrix import context
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.compiler.pipeline import full_pipeline
from tilewright.ir.levels import T0
from tilewright.ir.op import ElementwiseOp, TileOp, build
from tilewright.ir.text import parse_module
from tilewright.ir.verify_level import verify_level
from tilewright.machine.model import MachineModel
from tilewright.ops.dialects import TILE_OPS
from tilewright.ops.memory.ir import LoadOp
from tilewright.passes.coverage import Coverage
from tilewright.runtime.drivers import load_driver
from tilewright.schedule.layout.anchors import ANCHORS, Anchored
from tilewright.support.errors import DuplicateRegistration, MissingRule, UnsupportedError
from tilewright.support.options import CompileOptions
from tilewright.targets.cpu.coverage import CPU_COVERAGE
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.mlir.coverage import MLIR_COVERAGE
from tilewright.targets.nvidia.coverage import NVIDIA_COVERAGE
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.target import TARGETS, load_target

COVERAGES = {"cpu": CPU_COVERAGE, "nvidia": NVIDIA_COVERAGE, "mlir": MLIR_COVERAGE}
ENTRIES = {"cpu": "define", "nvidia": "define", "mlir": "func.func @"}
SOURCES = Path(__file__).parents[2] / "src" / "tilewright"
every_op = pytest.mark.parametrize("op", TILE_OPS, ids=lambda op: op.name)
every_target = pytest.mark.parametrize("target", TARGETS)


@cache
def machine(target: str) -> MachineModel:
    return named_machine("sm_90a") if target == "nvidia" else load_driver(target).machine(None)


def emitted(module: ModuleOp, target: str) -> str:
    """The text for the target's assembler."""
    manifest, options = load_target(target), CompileOptions()
    reports = full_pipeline(manifest, machine(target), options).apply(module)
    verify_level(module, manifest.contract(manifest.level))
    scheduled = manifest.describe(module, options, reports)
    return manifest.emit(scheduled, machine(target), options)


@every_target
@every_op
def test_op_is_lowered_or_refused_in_a_sentence(op: type[Operation], target: str) -> None:
    module = parse_module(kernel_text(op.name), context())
    verify_level(module, T0)
    assert any(isinstance(found, op) for found in module.walk())
    refused = COVERAGES[target].reasons.get(op.name)
    if refused is None:
        assert ENTRIES[target] in emitted(module, target)
        return
    with pytest.raises(UnsupportedError) as caught:
        emitted(module, target)
    assert (caught.value.summary, caught.value.hint) == refused
    assert caught.value.span is not None and caught.value.span.line == 3


def test_each_target_refuses_ops_of_the_language_only() -> None:
    names = {op.name for op in TILE_OPS}
    assert set(COVERAGES) == set(TARGETS)
    for coverage in COVERAGES.values():
        assert set(coverage.reasons) <= names


def test_a_refusal_is_a_sentence_with_a_remedy() -> None:
    for coverage in COVERAGES.values():
        for summary, hint in coverage.reasons.values():
            assert coverage.title in summary or "CPU" in summary
            assert hint


@pytest.mark.parametrize("target, rules", [("cpu", CPU_RULES), ("nvidia", NVIDIA_RULES)])
def test_every_op_of_a_target_has_a_lowering_rule(target: str, rules) -> None:
    loaded = load_target(target)
    last = loaded.contract(loaded.level)
    emitted = [op for op in loaded.ops if op.name not in last.excluded]
    assert [op.name for op in emitted if rules.find(op) is None] == []


def test_every_op_of_the_gpu_can_be_interpreted() -> None:
    ops = load_target("nvidia").ops
    assert [op.name for op in ops if not NVIDIA_INTERPRETATION.covers(op)] == []


# --- what a forgotten rule looks like -------------------------------------------------------


@irdl_op_definition
class ForgottenOp(TileOp):
    """An op on tiles that no table knows."""

    name = "test.forgotten"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class ForgottenElementwiseOp(ElementwiseOp):
    """An elementwise op that no table knows."""

    name = "test.forgotten_elementwise"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())


def with_op(op: type[Operation]) -> ModuleOp:
    """A kernel that puts what it loads through an op."""
    module = parse_module(kernel_text("math.absf"), context())
    (old,) = [found for found in module.walk() if found.name == "math.absf"]
    new = build(op, old.operands, [old.results[0].type], location=old.location)
    assert old.parent is not None
    old.parent.insert_op_before(new, old)
    old.results[0].replace_all_uses_with(new.results[0])
    old.detach()
    old.erase()
    return module


@pytest.mark.parametrize(
    "op, target, part, remedy",
    [
        (ForgottenOp, "cpu", "form on tiles", "@STEPS.register(ForgottenOp)"),
        (ForgottenOp, "mlir", "rule", "@RULES.register(ForgottenOp)"),
        (ForgottenOp, "nvidia", "layout rule", "@ANCHORS.register(ForgottenOp)"),
        (ForgottenElementwiseOp, "cpu", "lowering rule", "@DEFAULT_RULES.register"),
        (ForgottenElementwiseOp, "nvidia", "lowering rule", "@DEFAULT_RULES.register"),
    ],
)
def test_an_op_without_a_rule_is_named_with_its_line_and_the_table(
    op: type[Operation], target: str, part: str, remedy: str
) -> None:
    with pytest.raises(MissingRule) as caught:
        emitted(with_op(op), target)
    error = caught.value
    assert error.summary == f"{op.name} has no {part} for {COVERAGES[target].title}"
    assert remedy in error.hint
    assert error.span is not None and error.span.line == 3
    assert [call.line for call in error.chain] == [8]


def test_an_op_with_a_layout_and_no_rule_for_threads_is_named(monkeypatch) -> None:
    monkeypatch.setitem(ANCHORS._rules, ForgottenOp, lambda near, op: Anchored((None,), (None,)))
    with pytest.raises(MissingRule, match="has no rule for threads for NVIDIA GPUs"):
        emitted(with_op(ForgottenOp), "nvidia")


@every_target
def test_no_gap_is_seen_where_a_rule_is(target: str) -> None:
    module = with_op(ForgottenOp)
    gaps = [op.name for op in module.walk() if not COVERAGES[target].is_covered(op)]
    assert gaps == ["test.forgotten"]


def test_what_is_unsupported_is_refused_before_anything_is_lowered() -> None:
    coverage = Coverage("here", "this machine", CPU_COVERAGE.find_gap)
    coverage.unsupported(ForgottenOp, "forgotten(): it is not for this machine", "use another")
    (op,) = [found for found in with_op(ForgottenOp).walk() if isinstance(found, ForgottenOp)]
    assert coverage.is_covered(op)
    with pytest.raises(DuplicateRegistration, match="unsupported on this machine already"):
        coverage.unsupported(ForgottenOp, "once more")


def test_a_table_takes_one_rule_a_class_and_names_both_places() -> None:
    with pytest.raises(DuplicateRegistration) as caught:
        SIMT_RULES.register(LoadOp)(test_each_target_refuses_ops_of_the_language_only)
    assert caught.value.summary == "LoadOp has a rule in the table `threads` already"
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert re.search(r"rules/memory\.py:\d+", caught.value.types["first"])


# --- how much there is to write for a new op ------------------------------------------------


@pytest.mark.parametrize("word, most", [("histogram", 6), ("SortOp", 8)])
def test_an_op_that_is_not_elementwise_stands_in_few_files(word: str, most: int) -> None:
    # The op; its user function; its layout and scratch; its form on a CPU, of which sorts have two;
    # its rules for threads and for MLIR.
    files = [
        path.relative_to(SOURCES).as_posix()
        for path in sorted(SOURCES.rglob("*.py"))
        if word.lower() in path.read_text(encoding="utf-8").lower()
        and "Generated by" not in path.read_text(encoding="utf-8")[:300]
    ]
    assert len(files) <= most, files
