"""How many programs a multiprocessor has registers for, by the results of their products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation

from tilewright.ir.types import shape_of, storage_bytes
from tilewright.machine.model import MachineModel

# By definition: a register of 32 bits.
_REGISTER_BYTES = 4
OTHER_REGISTERS = (30, 60)
"""What a thread holds beside the results of products, at least and mostly.

Measured with ptxas 13.0, 2026-11-22: 29 to 66 in attention by pointers with results of 64 and 128
registers. With 96 the loop that was pipelined took 140 in place of 128, so that one program was
left of two, and 0.83 of the speed (H200)."""


def programs_per_sm(
    products: Sequence[Operation], num_warps: int, machine: MachineModel, other_registers: int
) -> int:
    """The programs of `num_warps` warps whose threads hold the results of all `products` at once.

    `other_registers` are what a thread holds beside them.
    """
    threads = num_warps * machine.lanes
    types = [op.results[0].type for op in products]
    held_bytes = sum(prod(shape_of(type_)) * storage_bytes(type_) for type_ in types)
    registers = held_bytes // (threads * _REGISTER_BYTES) + other_registers
    return max(1, machine.registers_per_sm // (threads * registers))
