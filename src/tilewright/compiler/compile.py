"""The spine of the compiler: a request in, an artifact out, nothing else read or written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import accumulate
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from tilewright.analysis.argument_effects import ArgumentEffects, argument_effects
from tilewright.compiler.pipeline import (
    Pipeline,
    full_pipeline,
    schedule_pipeline,
    tile_pipeline,
)
from tilewright.compiler.request import CompileRequest, OptionValue
from tilewright.frontend.lower import lower_kernel
from tilewright.frontend.passing import slot_count
from tilewright.ir.levels import LEVELS
from tilewright.ir.passes import Pass
from tilewright.ir.verify_level import LegalTypes, check_level, check_types
from tilewright.language.extensions import load_part
from tilewright.runtime.artifact import Artifact
from tilewright.support.collection import collection_paused
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import TilewrightError
from tilewright.targets.target import Scheduled, Target, load_target

FORM = "form"
"""The entry of an artifact's metadata with the options of its form that are not the request's."""
StageResult = ModuleOp | str | Mapping[str, bytes]
Observer = Callable[[str, StageResult], None]


@collection_paused()
def compile_request(
    request: CompileRequest, key: str = "", observe: Observer | None = None
) -> Artifact:
    """Compile a request for its target.

    `observe(stage, result)` sees what each stage gives: the module of an IR stage, the text
    that is handed to the assembler (`llir`), the sections that it returns (`object`).

    Where the assembler says that a form of the kernel is slow, or refuses it, the first of the
    target's other forms of which it says nothing is taken, with a remark; without one the first
    form stays, or its error.
    """
    started = time.perf_counter()
    target, watch = load_target(request.target), observe or _nobody
    lowered = _lower_form(request, watch)
    try:
        made = _assemble_form(lowered, watch)
    except TilewrightError as refusal:
        better = _better_form(lowered, refusal.summary) if refusal.is_of_configuration else None
        if better is None:
            raise
        return better.artifact(key, time.perf_counter() - started)
    problem = "" if target.problem_of is None else target.problem_of(made.sections)
    if problem:
        made = _better_form(lowered, problem) or made
    return made.artifact(key, time.perf_counter() - started)


@dataclass(frozen=True)
class _Lowered:
    """What a request was lowered to, before the assembler has seen it."""

    request: CompileRequest
    scheduled: Scheduled
    effects: ArgumentEffects
    text: str


@dataclass(frozen=True)
class _Made:
    """What a request was compiled to, and the options of the form that it has."""

    request: CompileRequest
    scheduled: Scheduled
    effects: ArgumentEffects
    sections: Mapping[str, bytes]
    form: Mapping[str, object] = field(default_factory=dict)

    def artifact(self, key: str, seconds: float) -> Artifact:
        """The artifact of the request."""
        metadata = _metadata(self.request, self.scheduled, self.effects, seconds)
        return Artifact(key, {**metadata, FORM: dict(self.form)}, self.sections)


def _lower_form(request: CompileRequest, watch: Observer) -> _Lowered:
    """Lower a request as its options say."""
    target, options = load_target(request.target), request.compile_options
    module = read_kernel(request)
    effects = argument_effects(module)
    watch("frontend", module)
    reports = _apply(full_pipeline(target, request.machine, options), module, target, watch)
    scheduled = target.describe(module, options, reports)
    text = target.emit(scheduled, request.machine, options)
    watch("llir", text)
    return _Lowered(request, scheduled, effects, text)


def _assemble_form(lowered: _Lowered, watch: Observer) -> _Made:
    """Give what was lowered to the assembler."""
    request = lowered.request
    target, options = load_target(request.target), request.compile_options
    sections = target.assemble(lowered.text, request.machine, options)
    watch("object", sections)
    return _Made(request, lowered.scheduled, lowered.effects, sections)


def _better_form(first: _Lowered, problem: str) -> _Made | None:
    """The first of the other forms that the assembler has nothing against."""
    request = first.request
    target = load_target(request.target)
    if target.problem_of is None:
        return None
    for form in target.other_forms(first.scheduled, request.compile_options, problem):
        try:
            made = _assemble_form(_lower_form(in_form(request, form.options), _nobody), _nobody)
        except TilewrightError:  # what the target cannot make of the kernel is no form of it
            continue
        if not target.problem_of(made.sections) and form.is_right(made.scheduled):
            remarks = (form.remark, *made.scheduled.remarks)
            scheduled = replace(made.scheduled, remarks=remarks)
            return replace(made, request=request, scheduled=scheduled, form=form.options)
    return None


def in_form(request: CompileRequest, form: Mapping[str, object]) -> CompileRequest:
    """A request with the options of another form; `form` is the entry `FORM` of an artifact."""
    options = {**request.options, **cast("Mapping[str, OptionValue]", form)}
    return replace(request, options=options)


def read_kernel(request: CompileRequest) -> ModuleOp:
    """The kernel as T0, with the rules of the request's extensions for what comes next."""
    module = lower_kernel(request)
    load_part("rules")
    load_part(request.target)
    return module


def _nobody(stage: str, result: StageResult) -> None:
    """The observer of a compile that nobody watches."""


def to_tiles(request: CompileRequest, target: Target, observe: Observer | None = None) -> ModuleOp:
    """The kernel as T0, after the target's tile passes."""
    module, watch = read_kernel(request), observe or _nobody
    watch("frontend", module)
    tile_pipeline(target, request.machine, request.compile_options).apply(module, watch)
    return module


def to_schedule(
    request: CompileRequest, target: Target, module: ModuleOp, observe: Observer | None = None
) -> Scheduled:
    """The T0 module at the target's scheduled level."""
    options = request.compile_options
    pipeline = schedule_pipeline(target, request.machine, options)
    reports = _apply(pipeline, module, target, observe or _nobody)
    return target.describe(module, options, reports)


def _apply(
    pipeline: Pipeline, module: ModuleOp, target: Target, watch: Observer
) -> tuple[object, ...]:
    """Run passes to the target's level, which is checked, as is each one of other types on the way.

    *Raises* InternalError for a module that is not at the level that a pass leaves.
    """
    worked_at = {item.requires for item in pipeline.passes if item.requires == item.produces}
    changing = (item for item in pipeline.passes if _changes_types(item))
    reached = {item.name: item.produces for item in changing if item.produces in worked_at}

    legal = LegalTypes()

    def look(name: str, result: ModuleOp) -> None:
        if name in reached:
            check_types(result, target.contract(reached[name]), legal)
        watch(name, result)

    reports = pipeline.apply(module, look)
    check_level(module, target.contract(target.level), legal)
    return reports


def _changes_types(item: Pass) -> bool:
    """Whether a pass leads to a level whose modules have other types, and not more of them."""
    before, behind = LEVELS[item.requires], LEVELS[item.produces]
    return before.type_rule is not behind.type_rule and before.name not in behind.includes


def _metadata(
    request: CompileRequest, scheduled: Scheduled, effects: ArgumentEffects, seconds: float
) -> dict[str, object]:
    arguments = [[list(path), type_] for path, type_ in request.specialization.runtime_leaves()]
    source = request.functions[request.kernel]
    return {
        "name": request.name,
        "defined": [source.file, source.definition_line],
        "constants": request.specialization.plain_constants(),
        "target": request.target,
        "arguments": arguments,
        **effects_by_path(request, effects),
        "options": dict(request.options),
        "remarks": list(scheduled.remarks),
        "compile_seconds": seconds,
        **scheduled.metadata,
    }


def effects_by_path(
    request: CompileRequest, effects: ArgumentEffects
) -> dict[str, list[list[str | int]]]:
    """The arguments that a kernel reads, writes and stores through, by their paths."""
    leaves = request.specialization.runtime_leaves()
    first_slots = accumulate((slot_count(type_) for _, type_ in leaves), initial=0)
    paths = {slot: list(path) for slot, (path, _) in zip(first_slots, leaves, strict=False)}
    return {
        "reads": [path for slot, path in paths.items() if slot in effects.read],
        "writes": [path for slot, path in paths.items() if slot in effects.written],
        "stores": [path for slot, path in paths.items() if slot in effects.stored],
    }
