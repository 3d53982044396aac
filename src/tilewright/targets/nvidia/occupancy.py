"""Occupancy: how many ctas of a kernel fit on one SM, and what keeps more out."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.support.dataclass import dataclass

# Allocation units. Source: CUDA occupancy calculator, compute capability 9.0.
_REGISTERS_PER_WARP_UNIT = 256
_SHARED_UNIT_BYTES = 128
_WARP_UNIT = 4
_WARP_SIZE = 32


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
    machine: Mapping[str, int | float | str | bool | None],
) -> Occupancy:
    """The occupancy of a kernel on a machine.

    *Units*: `registers` a thread; `shared_bytes` a cta, static and dynamic together.

    *Example*

    >>> from tilewright.targets.nvidia.host import NAMED_MACHINES
    >>> occupancy(168, 12, 200_000, NAMED_MACHINES["sm_90a"])
    Occupancy(ctas_per_sm=1, warps_per_sm=12, max_warps_per_sm=64, limit='registers')
    """
    max_warps = _size(machine, "max_threads_per_sm") // _WARP_SIZE
    limits = {
        "registers": _by_registers(registers, num_warps, _size(machine, "registers_per_sm")),
        "shared memory": _by_shared(shared_bytes, machine),
        "threads": max_warps // num_warps,
        "ctas": _size(machine, "max_ctas_per_sm"),
    }
    limit = min(limits, key=lambda name: limits[name])
    ctas = limits[limit]
    return Occupancy(ctas, ctas * num_warps, max_warps, limit)


def _by_registers(registers: int, num_warps: int, registers_per_sm: int) -> int:
    per_warp = _rounded_up(max(registers, 1) * _WARP_SIZE, _REGISTERS_PER_WARP_UNIT)
    # Registers belong to the four quarters of an SM, so warps fit in groups of four.
    warps = registers_per_sm // per_warp // _WARP_UNIT * _WARP_UNIT
    return warps // num_warps


def _by_shared(shared_bytes: int, machine: Mapping[str, int | float | str | bool | None]) -> int:
    per_cta = shared_bytes + _size(machine, "reserved_shared_bytes")
    return _size(machine, "shared_bytes_per_sm") // _rounded_up(per_cta, _SHARED_UNIT_BYTES)


def _size(machine: Mapping[str, int | float | str | bool | None], name: str) -> int:
    return int(machine[name] or 0)


def _rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
