"""Calls into the driver: printed lines and failed assertions."""

from __future__ import annotations

import re
import struct

import numpy as np

from tilewright.interp.rules.debug import exact_text
from tilewright.interp.simt import types as t
from tilewright.interp.simt.calls import Call, Compute, intrinsic
from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.machine import Machine
from tilewright.ir.op import Array
from tilewright.support.errors import AssertionFailed

_CONVERSION = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|z|j)?([diouxXeEfFgGacsp%])")


def text_at(machine: Machine, address: int) -> str:
    """The bytes up to a zero byte in global memory."""
    region = machine.memory.find(address)
    data = region.bytes()[address - region.base :]
    length = int(np.argmax(data == 0)) if (data == 0).any() else len(data)
    return data[:length].tobytes().decode(errors="replace")


@intrinsic("vprintf")
def _print(call: Call) -> Compute:
    machine = call.machine

    def compute() -> Array:
        threads = machine.active()
        pattern = text_at(machine, int(call.array(0)[threads[0]]))
        columns = _columns(call, pattern, threads)
        bare = _CONVERSION.sub(_without_length, pattern)
        for row in range(len(threads)):
            machine.report.printed.append(bare % tuple(column[row] for column in columns))
        return np.zeros(machine.threads, np.uint32)

    return compute


def _without_length(found: re.Match[str]) -> str:
    kind = "s" if found[3] in "pa" else found[3]
    return f"%{found[1]}{'d' if kind == 'u' else kind}"


def _columns(call: Call, pattern: str, threads: Array) -> list[list[object]]:
    """The values of each conversion, one per thread, from the packed arguments."""
    offset, columns = 0, list[list[object]]()
    for found in _CONVERSION.finditer(pattern):
        if found[3] == "%":
            continue
        size = 8 if found[3] in "eEfFgGasp" or found[2] in ("l", "ll", "z", "j") else 4
        offset = -(-offset // size) * size
        addresses = call.array(1)[threads] + np.uint64(offset)
        data = call.machine.gather(t.GENERIC, addresses, threads, size, size, call.site)
        columns.append([_value(call.machine, row.tobytes(), found[3]) for row in data])
        offset += size
    return columns


def _value(machine: Machine, data: bytes, kind: str) -> object:
    if kind in "eEfFgGa":
        number = struct.unpack("<d", data)[0]
        return exact_text(number) if kind == "a" else number
    if kind == "s":
        return text_at(machine, int.from_bytes(data, "little"))
    number = int.from_bytes(data, "little", signed=kind in "dic")
    return f"{number:#x}" if kind == "p" else number


@intrinsic("__assertfail")
def _assertion(call: Call) -> Compute:
    machine = call.machine

    def compute() -> None:
        thread = int(machine.active()[0])
        message, file, name = (text_at(machine, int(call.array(i)[thread])) for i in (0, 1, 3))
        line = int(call.array(2)[thread])
        raise Fault(AssertionFailed, f"{message} (thread {thread}, {file}:{line}, in {name})")

    return compute
