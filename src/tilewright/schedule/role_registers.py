"""With how many registers the threads of roles start, and how many they can have in all.

A program takes its registers when it starts, as many for each thread; roles then give some back or
take what others gave. Who takes more than was given back waits for ever.
"""

from __future__ import annotations

from tilewright.machine.model import MachineModel


def entry_registers(machine: MachineModel, warps: int, granted: int = 0) -> int:
    """The registers with which each thread of a cta of so many warps starts.

    They are those of `granted`, the sum over warps of what a lane is granted later, shared by all
    warps, where a second cta then fits an SM. Else, and with 0, they are as many as a cta has that
    has an SM to itself: ptxas refuses an instruction of more registers than a kernel starts with,
    whatever the role has taken by then (`wgmma` of 64x256 needs 154; ptxas 13.0, 2026-11-23).
    """
    each = min(_most_each(machine, warps), machine.max_registers_per_thread)
    unit = machine.register_unit // machine.lanes
    shared = -(-granted // (warps * unit)) * unit
    is_for_two = 0 < 2 * shared * warps * machine.lanes <= machine.registers_per_sm
    return min(each, shared) if is_for_two else each


def most_granted(machine: MachineModel, warps: int) -> int:
    """The most registers that the roles of a cta of so many warps can have together."""
    return _most_each(machine, warps) * warps * machine.lanes


def _most_each(machine: MachineModel, warps: int) -> int:
    """What an SM has for each thread of a cta, in whole units."""
    unit = machine.register_unit // machine.lanes
    return machine.registers_per_sm // (warps * machine.lanes) // unit * unit
