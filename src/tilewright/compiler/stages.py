"""The text of each compilation stage of a request, produced on demand."""

from __future__ import annotations

from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.ir.text import print_module
from tilewright.support.errors import InternalError
from tilewright.targets.target import load_target


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
