"""Assembling with an eye on occupancy: a few registers less where they let one more cta in.

ptxas takes the registers it likes, and stops at no boundary of the register file. Where a kernel
is just above one, it is assembled once more below it. That is kept if nothing spills, or next to
nothing where the ctas on an SM double.
"""

from __future__ import annotations

import re

from tilewright.machine.model import MachineModel
from tilewright.support.errors import InternalError
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.assembler import Assembled, assemble_ptx
from tilewright.targets.nvidia.errors import AssemblerFailed, ResourcesExceeded

# Measured on an H200, 2026-11-21, as fractions of the speed with one cta more on an SM: layer norm
# backward with 16 warps at 74 registers 0.68, softmax of 16384 with 16 warps at 70 registers 0.87.
# Further down spills or longer code cost more than they give.
_SMALLEST_FRACTION = 0.8
# Chosen, not measured: products of warp groups wait for each other where registers are short, so a
# few are taken away only (of 130 to 128, ptxas 13.0.88, and a program more beside each other).
_SMALLEST_FRACTION_OF_PRODUCTS = 0.95
# Chosen, not measured: four registers of a thread, touched once, where one more cta is the gain.
_NEGLIGIBLE_SPILL_BYTES = 16
_THREADS = re.compile(r"^\.reqntid (\d+).*$", re.MULTILINE)


def assemble_for_occupancy(ptx: str, machine: MachineModel, options: CompileOptions) -> Assembled:
    """Assemble a kernel, and again with fewer registers where that may let more run at once."""
    first = assemble_ptx(ptx, machine.arch, options)
    registers = first.resources.registers
    threads = _num_threads(ptx)
    if options.maxnreg or "setmaxnreg" in ptx or first.resources.has_spills or not threads:
        return first
    ctas, multiplies = _ctas(machine, registers, threads), "wgmma" in ptx
    fraction = _SMALLEST_FRACTION_OF_PRODUCTS if multiplies else _SMALLEST_FRACTION
    if not _may_hold(machine, ctas + 1, threads, fraction * registers):
        return first
    directive = f"\\g<0>\n.minnctapersm {ctas + 1}"
    try:
        second = assemble_ptx(_THREADS.sub(directive, ptx, count=1), machine.arch, options)
    except (AssemblerFailed, ResourcesExceeded, InternalError):
        # ptxas 13.0.88 dies of the directive in some kernels with a sort, and has too few
        # registers for some products then (seen 2026-11-22 and 28).
        return first
    if multiplies and second.remarks() != first.remarks():
        return first
    return second if _spill_bytes(second) <= _allowed_spill(ctas, multiplies) else first


def _num_threads(ptx: str) -> int:
    found = _THREADS.search(ptx)
    return 0 if found is None else int(found[1])


def _ctas(machine: MachineModel, registers: int, threads: int) -> int:
    """The ctas whose registers an SM holds."""
    unit = machine.register_unit // machine.lanes
    rounded = -(-max(1, registers) // unit) * unit
    return machine.registers_per_sm // (rounded * threads)


def _may_hold(machine: MachineModel, ctas: int, threads: int, fewest: float) -> bool:
    """Whether so many ctas fit with `fewest` registers a thread or more."""
    if ctas * threads > machine.max_threads_per_sm:
        return False
    unit = machine.register_unit // machine.lanes
    limit = machine.registers_per_sm // (ctas * threads) // unit * unit
    return limit >= fewest


def _spill_bytes(assembled: Assembled) -> int:
    used = assembled.resources
    return used.spill_store_bytes + used.spill_load_bytes


def _allowed_spill(ctas: int, multiplies: bool) -> int:
    return _NEGLIGIBLE_SPILL_BYTES if ctas == 1 and not multiplies else 0
