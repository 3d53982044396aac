"""Occupancy: how many ctas of a kernel fit on one SM, and what keeps more out."""

from __future__ import annotations

from tilewright.machine.model import MachineModel
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Occupancy:
    """How full an SM gets: ctas and warps on it, and `limit`, what keeps the next cta out.

    `limit` is `registers`, `shared memory`, `threads` or `ctas`.
    """

    ctas_per_sm: int
    warps_per_sm: int
    max_warps_per_sm: int
    limit: str

    @property
    def fraction(self) -> float:
        """Warps on the SM over the most that it holds."""
        return self.warps_per_sm / self.max_warps_per_sm


def occupancy(
    registers: int,
    num_warps: int,
    shared_bytes: int,
    machine: MachineModel,
) -> Occupancy:
    """The occupancy of a kernel on a machine.

    *Units*: `registers` a thread; `shared_bytes` a cta, static and dynamic together.

    *Example*

    >>> from tilewright.targets.nvidia.host import NAMED_MACHINES
    >>> occupancy(168, 12, 200_000, NAMED_MACHINES["sm_90a"])
    Occupancy(ctas_per_sm=1, warps_per_sm=12, max_warps_per_sm=64, limit='registers')
    """
    max_warps = machine.max_warps_per_sm
    limits = {
        "registers": _by_registers(registers, num_warps, machine),
        "shared memory": _by_shared(shared_bytes, machine),
        "threads": max_warps // num_warps,
        "ctas": machine.max_ctas_per_sm,
    }
    limit = min(limits, key=lambda name: limits[name])
    ctas = limits[limit]
    return Occupancy(ctas, ctas * num_warps, max_warps, limit)


def _by_registers(registers: int, num_warps: int, machine: MachineModel) -> int:
    per_warp = _rounded_up(max(registers, 1) * machine.lanes, machine.register_unit)
    unit = machine.warp_unit
    return machine.registers_per_sm // per_warp // unit * unit // num_warps


def _by_shared(shared_bytes: int, machine: MachineModel) -> int:
    per_cta = _rounded_up(shared_bytes + machine.reserved_shared_bytes, machine.shared_unit_bytes)
    return machine.shared_bytes_per_sm // per_cta


def _rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
