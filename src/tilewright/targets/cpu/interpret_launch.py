"""How the interpreter answers what a program asks of its launch."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from tilewright.interp.access import lanes_of
from tilewright.interp.code import PlainFunction, Preparation
from tilewright.interp.program import Program
from tilewright.interp.rules.memory import Element, pointee_of, store_lanes
from tilewright.ir.op import Array
from tilewright.targets.cpu.launch_ops import ForgetOp


def forget(operation: Operation, _: Preparation) -> PlainFunction:
    """Each program is the first of its launch: none finds what another has kept."""
    assert isinstance(operation, ForgetOp)
    element = Element.of(pointee_of(operation.buffer.type))
    zeros = np.zeros(operation.num_elems.value.data, element.memory_dtype)

    def evaluate(program: Program, buffer: Array) -> None:
        addresses = buffer + np.arange(len(zeros), dtype=np.int64) * zeros.itemsize
        store_lanes(program, lanes_of(addresses, None), zeros, element)

    return evaluate


def do_nothing(operation: Operation, preparation: Preparation) -> PlainFunction:
    """Python itself stops the interpreter, and nobody asks what was counted."""
    return lambda program, *operands: None


def start_count(operation: Operation, preparation: Preparation) -> PlainFunction:
    """Nothing takes cycles here."""
    return lambda program: np.int64(0)


def is_alone(operation: Operation, preparation: Preparation) -> PlainFunction:
    """The only program of a launch is alone; programs take turns at any op."""
    return lambda program: np.array(program.machine.grid == (1, 1, 1))
