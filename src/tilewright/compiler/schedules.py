"""The schedules of a kernel that a tuner may try, as options of its launches."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.compiler.compile import to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.targets.target import load_target


def schedules(request: CompileRequest) -> tuple[Mapping[str, object], ...]:
    """The options of each schedule, in a fixed order; () where the target has none to choose from.

    Raises: any error of the kernel's author, as its compilation would.
    """
    target = load_target(request.target)
    if target.enumerate_schedules is None:
        return ()
    module = to_tiles(request, target)
    return target.enumerate_schedules(module, request.machine, request.compile_options)
