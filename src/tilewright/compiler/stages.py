"""The text of each compilation stage of a request, produced on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import ModuleOp

from tilewright.compiler.compile import StageResult, to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.lower import lower_kernel
from tilewright.ir.text import print_module
from tilewright.runtime.artifact import Artifact
from tilewright.support.errors import InternalError
from tilewright.targets.target import Scheduled, load_target

Show = Callable[[ModuleOp], str]
# What the scheduled level is called as a stage, and the sections of artifacts that are text.
_SCHEDULED = ("nests", "t2")
_ASSEMBLY = ("asm", "ptx")
_TEXT_SECTIONS = ("ptx",)


def stage_text(request: CompileRequest, stage: str) -> str:
    """A stage of a request as text: `source`, `ttir`, the scheduled one, `llir`, the assembly."""
    if stage == "source":
        return request.functions[request.kernel].text
    target = load_target(request.target)
    module = to_tiles(request, target, None)
    if stage == "ttir":
        return print_module(module)
    steps: dict[str, ModuleOp] = {}
    scheduled = to_schedule(request, target, module, lambda name, m: _keep(steps, name, m))
    if stage in steps:
        return print_module(steps[stage])
    if stage in _SCHEDULED:
        return print_module(scheduled.module)
    text = target.emit(scheduled, request.machine, request.compile_options)
    if stage == "llir":
        return text
    if stage in _ASSEMBLY:
        return target.disassemble(text, request.machine, request.compile_options)
    raise InternalError(f"there is no stage {stage!r}")


def _keep(steps: dict[str, ModuleOp], name: str, result: StageResult) -> None:
    assert isinstance(result, ModuleOp)
    steps[name] = result.clone()


def artifact_stage(request: CompileRequest, artifact: Artifact, stage: str) -> str | bytes:
    """A stage of a compiled kernel: out of the artifact where it holds it, else made again."""
    if stage in artifact.sections:
        data = artifact.sections[stage]
        return data.decode() if stage in _TEXT_SECTIONS else data
    if stage in load_target(request.target).views:
        return load_target(request.target).views[stage](artifact.sections)
    return stage_text(request, stage)


def plain_name(stage: str) -> str:
    """The name in `stage_names` of a stage that may be called by its level: `t2`, `nests`."""
    return "schedule" if stage in _SCHEDULED else stage


def stage_names(request: CompileRequest) -> tuple[str, ...]:
    """The stages that `stages` yields, in order."""
    target = load_target(request.target)
    passes = target.tile_passes(request.machine, request.compile_options)
    return (
        "source",
        "frontend",
        *(item.name for item in passes),
        *target.steps,
        "schedule",
        "llir",
        target.assembly,
    )


def stages(request: CompileRequest, show: Show = print_module) -> Iterator[tuple[str, str]]:
    """Every stage of a request with its text, as far as the compiler comes.

    A stage is computed when the one before it has been taken, so an error of a late stage
    leaves the early ones.
    """
    target = load_target(request.target)
    yield "source", request.functions[request.kernel].text
    module = lower_kernel(request)
    yield "frontend", show(module)
    for tile_pass in target.tile_passes(request.machine, request.compile_options):
        tile_pass.apply(module)
        yield tile_pass.name, show(module)
    steps: list[tuple[str, str]] = []
    scheduled = target.schedule(
        module,
        request.machine,
        request.compile_options,
        lambda name, m: steps.append((name, show(m))),
    )
    yield from steps
    yield "schedule", show(scheduled.module)
    text = target.emit(scheduled, request.machine, request.compile_options)
    yield "llir", text
    yield target.assembly, target.disassemble(text, request.machine, request.compile_options)


def schedule_of(request: CompileRequest) -> Scheduled:
    """The request at its target's level, with the target's report on its decisions."""
    target = load_target(request.target)
    return to_schedule(request, target, to_tiles(request, target, None), None)
