"""A generated kernel compiled for Hopper and run by the simulator of its threads."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import Array, Case
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.passing import value_at
from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.support.options import option_names
from tilewright.targets.target import load_target

MACHINE = {"arch": "sm_90a"}
LANES = 32
STEP_LIMIT = 300_000


def run_simulated(case: Case) -> dict[str, Array]:
    """What the arrays hold after a simulated launch; faults and races are errors."""
    values = case.values()
    call = case.kernel.specialize_call((), {**values, "enable_fp_fusion": False})
    options = {name: getattr(call.options, name) for name in option_names()}
    source = call.source
    request = CompileRequest(
        source.functions, source.kernel, call.specialization, options, "nvidia", MACHINE
    )
    target = load_target("nvidia")
    scheduled = to_schedule(request, target, to_tiles(request, target, None), None)
    text = target.emit(scheduled, request.machine, request.options)
    arguments: list[Argument] = []
    for path, _ in call.specialization.runtime_leaves():
        value = value_at(path, call.arguments)
        assert isinstance(value, np.ndarray | int | float)
        arguments.append(value)
    num_threads = LANES * int(str(scheduled.metadata["num_warps"]))
    x, y, z = (*case.grid, 1, 1)[:3]
    shared_bytes = int(str(scheduled.metadata["shared_bytes"]))
    simulate(
        text,
        request.name,
        (x, y, z),
        num_threads,
        arguments,
        shared_bytes,
        step_limit=STEP_LIMIT,
    )
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
