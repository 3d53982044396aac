"""The text of each compilation stage of a request, produced on demand.

A stage is `source`, what the frontend writes (`frontend`), what each pass of the target leaves,
by the name of the pass, `llir`, and the assembly. The levels have names of their own: `ttir` is
T0 as the target takes it, `plan` T0 with all decisions, `t1` what lays tiles out, `t2` or `nests`
(or `schedule`) the target's last level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from tilewright.compiler.compile import FORM, in_form, read_kernel, to_schedule, to_tiles
from tilewright.compiler.pipeline import Pipeline, full_pipeline, tile_pipeline
from tilewright.compiler.request import CompileRequest
from tilewright.ir.text import print_module
from tilewright.runtime.artifact import Artifact
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InvalidOption
from tilewright.targets.target import Scheduled, load_target

_TEXT_SECTIONS = ("ptx", "mlir")
_ASSEMBLY = ("asm", "ptx", "llvm")
_PLAN = "verify-layouts"
_LEVEL_NAMES = {"C2": ("nests", "c2"), "T2": ("t2",)}


@dataclass(frozen=True)
class Stage:
    """A stage by its name, and the one that comes before what is called so."""

    name: str
    before: str = ""


def find_stage(request: CompileRequest, wanted: str) -> Stage:
    """The stage that a user means by a name. *Raises*: InvalidOption with those there are."""
    names = stage_names(request)
    found = _levels(request).get(wanted)
    if found is not None:
        return found
    if wanted not in names:
        known = ", ".join((*names, *_levels(request)))
        raise InvalidOption(f"there is no stage or pass `{wanted}`", hint=f"the stages are {known}")
    return Stage(wanted, names[max(0, names.index(wanted) - 1)])


def _levels(request: CompileRequest) -> dict[str, Stage]:
    """The stages that are called by a level, each with the one that its way there starts from."""
    target = load_target(request.target)
    tiles = tile_pipeline(target, request.machine, request.compile_options)
    passes = _pipeline(request).passes
    ttir = tiles.passes[-1].name if tiles.passes else "frontend"
    last = Stage(passes[-1].name, ttir)
    levels = {"ttir": Stage(ttir, "frontend"), "schedule": last}
    levels |= dict.fromkeys(_LEVEL_NAMES.get(target.level, ()), last)
    for item in passes:
        if item.name == _PLAN:
            levels["plan"] = Stage("plan", ttir)
        if item.requires != item.produces == "T1":
            levels["t1"] = Stage(item.name, ttir)
    return levels


def _pipeline(request: CompileRequest) -> Pipeline:
    target = load_target(request.target)
    return full_pipeline(target, request.machine, request.compile_options)


def stage_text(request: CompileRequest, stage: str) -> str:
    """A stage of a request as text, under any of its names. *Raises*: InvalidOption."""
    target = load_target(request.target)
    name = target.assembly if stage in _ASSEMBLY else find_stage(request, stage).name
    return next(show() for found, show in stages(request) if found == name)


def artifact_stage(request: CompileRequest, artifact: Artifact, stage: str) -> str | bytes:
    """A stage of a compiled kernel: out of the artifact where it holds it, else made again."""
    if stage in artifact.sections:
        data = artifact.sections[stage]
        return data.decode() if stage in _TEXT_SECTIONS else data
    if stage in load_target(request.target).views:
        return load_target(request.target).views[stage](artifact.sections)
    return stage_text(formed_request(request, artifact), stage)


def formed_request(request: CompileRequest, artifact: Artifact) -> CompileRequest:
    """The request whose stages led to an artifact: of another form where the first one was slow."""
    return in_form(request, cast("Mapping[str, object]", artifact.metadata.get(FORM, {})))


def stage_names(request: CompileRequest) -> tuple[str, ...]:
    """The stages that `stages` yields, in order."""
    passes = (item.name for item in _pipeline(request).passes)
    target = load_target(request.target)
    return ("source", "frontend", *passes, target.text, target.assembly)


Show = Callable[[], str]
"""The text of a stage, made when it is asked for: before the next stage is taken."""


def stages(
    request: CompileRequest, print_: Callable[[ModuleOp], str] = print_module
) -> Iterator[tuple[str, Show]]:
    """Every stage of a request, as far as the compiler comes.

    A stage is computed when it is taken, so an error of a late stage leaves the early ones.
    """
    target, options = load_target(request.target), request.compile_options
    yield "source", lambda: request.functions[request.kernel].text
    module = read_kernel(request)
    yield "frontend", lambda: print_(module)
    reports: list[object] = []
    for name, report in _pipeline(request).steps(module):
        reports.append(report)
        yield name, lambda: print_(module)
        if name == _PLAN:
            yield "plan", lambda: print_(module)
    scheduled = target.describe(module, options, tuple(reports))
    text = target.emit(scheduled, request.machine, options)
    yield target.text, lambda: text
    yield target.assembly, lambda: target.disassemble(text, request.machine, options)


def schedule_of(request: CompileRequest) -> Scheduled:
    """The request at its target's level, with the target's report on its decisions."""
    target = load_target(request.target)
    return to_schedule(request, target, to_tiles(request, target))
