"""The schedules of a kernel that a tuner may try, as options of its launches."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.compiler.compile import to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.support.dataclass import replace
from tilewright.targets.target import load_target


def schedules(request: CompileRequest) -> tuple[Mapping[str, object], ...]:
    """The options of each schedule, in a fixed order; () where the target has none to choose from.

    Raises: any error of the kernel's author, as its compilation would.
    """
    target = load_target(request.target)
    if target.enumerate_schedules is None:
        return ()
    options = request.compile_options
    # As a kernel stands that is asked to run as roles, which all of these may be made of.
    asked = replace(options, num_consumer_groups=options.num_consumer_groups or 1)
    given = {name: getattr(asked, name) for name in request.options}
    module = to_tiles(replace(request, options=given), target)
    return target.enumerate_schedules(module, request.machine, options)
