"""The text of each compilation stage of a request, produced on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import ModuleOp

from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.lower import lower_kernel
from tilewright.ir.text import print_module
from tilewright.support.errors import InternalError
from tilewright.targets.target import Scheduled, load_target

Show = Callable[[ModuleOp], str]


def stage_text(request: CompileRequest, stage: str) -> str:
    """`source`, `ttir`, `nests`, `llir` or `asm` of a request."""
    if stage == "source":
        return request.functions[request.kernel].text
    target = load_target(request.target)
    module = to_tiles(request, target, None)
    if stage == "ttir":
        return print_module(module)
    scheduled = to_schedule(request, target, module, None)
    if stage == "nests":
        return print_module(scheduled.module)
    text = target.emit(scheduled, request.machine, request.options)
    if stage == "llir":
        return text
    if stage == "asm":
        return target.disassemble(text, request.machine, request.options)
    raise InternalError(f"there is no stage {stage!r}")


def stage_names(request: CompileRequest) -> tuple[str, ...]:
    """The stages that `stages` yields, in order."""
    target = load_target(request.target)
    passes = target.tile_passes(request.machine, request.options)
    return ("source", "frontend", *(item.name for item in passes), "schedule", "llir", "asm")


def stages(request: CompileRequest, show: Show = print_module) -> Iterator[tuple[str, str]]:
    """Every stage of a request with its text, as far as the compiler comes.

    A stage is computed when the one before it has been taken, so an error of a late stage
    leaves the early ones.
    """
    target = load_target(request.target)
    yield "source", request.functions[request.kernel].text
    module = lower_kernel(request)
    yield "frontend", show(module)
    for tile_pass in target.tile_passes(request.machine, request.options):
        tile_pass.apply(module)
        yield tile_pass.name, show(module)
    scheduled = target.schedule(module, request.machine, request.options)
    yield "schedule", show(scheduled.module)
    text = target.emit(scheduled, request.machine, request.options)
    yield "llir", text
    yield "asm", target.disassemble(text, request.machine, request.options)


def schedule_of(request: CompileRequest) -> Scheduled:
    """The request at its target's level, with the target's report on its decisions."""
    target = load_target(request.target)
    return to_schedule(request, target, to_tiles(request, target, None), None)
