"""Assembling with an eye on occupancy: a few registers less where they let one more cta in.

ptxas takes the registers it likes, and stops at no boundary of the register file. Where a kernel
is just above one, it is assembled once more below it, and that is kept if nothing spills.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilewright.targets.nvidia.assembler import Assembled, assemble_ptx
from tilewright.targets.target import MachineFeatures

# Measured on an H200, 2026-11-21: layer norm backward with 16 warps at 74 registers ran at 0.68 of
# the speed that 64 registers allow; further down spills or longer code cost more than they give.
_SMALLEST_FRACTION = 0.84
_REGISTER_FILE = 65536
_REGISTER_UNIT = 8
_MAX_WARPS = 64
_THREADS = re.compile(r"^\.reqntid (\d+)", re.MULTILINE)


def assemble_for_occupancy(
    ptx: str, machine: MachineFeatures, options: Mapping[str, object]
) -> Assembled:
    """Assemble a kernel, and again with fewer registers where that may let more run at once."""
    arch = str(machine["arch"])
    first = assemble_ptx(ptx, arch, options)
    limit = _tighter_limit(ptx, first.resources.registers)
    if limit is None or options.get("maxnreg") or "wgmma" in ptx or first.resources.has_spills:
        return first
    extra = str(options.get("ptx_options") or "")
    tighter = {**options, "ptx_options": f"{extra} --maxrregcount={limit}".strip()}
    second = assemble_ptx(ptx, arch, tighter)
    return first if second.resources.has_spills else second


def _tighter_limit(ptx: str, registers: int) -> int | None:
    """The most registers with which one more cta fits, if that is not much less than now."""
    found = _THREADS.search(ptx)
    if found is None or registers == 0:
        return None
    threads = int(found[1])
    ctas = _REGISTER_FILE // (-(-registers // _REGISTER_UNIT) * _REGISTER_UNIT * threads)
    if (ctas + 1) * threads > 32 * _MAX_WARPS:
        return None
    limit = _REGISTER_FILE // ((ctas + 1) * threads) // _REGISTER_UNIT * _REGISTER_UNIT
    return limit if limit >= _SMALLEST_FRACTION * registers else None
