"""Running a case at T0r: its tile module, with the roles that a schedule asks for."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tests.corpus.case import Array, Case
from tests.corpus.once import once
from tests.corpus.run import run_module, tile_module
from tests.corpus.threads import gpu_request
from tilewright.ir.levels import T0R
from tilewright.ir.schedule_attributes import annotate_schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ir.verify_level import verify_level
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.ops import NVIDIA_OPS
from tilewright.targets.nvidia.partition.form import FormRoles, partition_remarks


@once
def run_tiles(case: Case) -> dict[str, Array]:
    """What the arrays hold after the case ran as T0, with its tensor maps."""
    return run_module(case, tile_module(gpu_request(case)), NVIDIA_INTERPRETATION)


def formed(case: Case, schedule: str) -> tuple[ModuleOp, tuple[str, ...]]:
    """The case at T0r under a schedule, and why it has no roles."""
    module = tile_module(gpu_request(case))
    kernel = find_kernel(module)
    annotate_schedule(kernel, parse_schedule(schedule))
    FormRoles().apply(module)
    verify_level(module, T0R.extended(*NVIDIA_OPS))
    return module, partition_remarks(kernel)


def run_formed(case: Case, schedule: str) -> dict[str, Array]:
    """What the arrays hold after the case ran as roles. It must have them."""
    module, remarks = formed(case, schedule)
    assert not remarks, remarks
    return run_module(case, module, NVIDIA_INTERPRETATION)
