"""PTX's products of warp groups: wgmma."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tilewright.interp.simt.fragments import OPERAND_DTYPES
from tilewright.interp.simt.in_flight import InFlight
from tilewright.interp.simt.products import ProductForm
from tilewright.interp.simt.ptx.rules import Compute, PtxCall, ptx
from tilewright.ir.op import Array

_SHAPE = re.compile(r"m64n(\d+)k\d+$")
_ACCUMULATORS = ("f32", "f16", "s32")


def _form(call: PtxCall, *, a_in_registers: bool) -> ProductForm:
    """What the modifiers and the trailing immediates say."""
    shape = _SHAPE.match(call.words[3])
    if call.words[1:3] != ("sync", "aligned") or shape is None or len(call.words) != 7:
        raise call.unknown()
    accumulator, a, b = call.words[4:]
    if accumulator not in _ACCUMULATORS or not {a, b} <= OPERAND_DTYPES.keys():
        raise call.unknown()
    flags = [call.immediate(index) for index in range(4, len(call.operands))]
    scales, transposes = flags[:2], flags[2:]
    if not scales:
        scales = [1, 1]
    transposes = ([0] if a_in_registers else []) + transposes if transposes else [0, 0]
    return ProductForm(
        int(shape[1]),
        accumulator,
        a,
        b,
        scales[0],
        scales[1],
        bool(transposes[0]),
        bool(transposes[1]),
    )


@ptx("wgmma.mma_async", words=None)
def _product(call: PtxCall) -> Compute:
    machine, site = call.machine, call.site
    targets, left = call.members(0), call.members(1)
    call.writes(*targets)
    in_registers = len(left) > 1
    form = _form(call, a_in_registers=in_registers)
    slots = [call.registers.slot(target) for target in targets]
    readers = [call.registers.reader(x, "b32" if in_registers else "u64") for x in left]
    right, adds = call.read(2, "u64"), call.read(3, "pred")
    unwritten = np.float32 if form.accumulator == "f32" else np.uint32

    def compute() -> Sequence[InFlight]:
        values = machine.values
        registers: list[Array | InFlight] = []
        for slot in slots:
            value = values[slot]
            if value is None:  # an output that the product only writes
                value = np.zeros(machine.threads, unwritten)
            assert not isinstance(value, tuple)
            registers.append(value)
        a = [read() for read in readers] if in_registers else readers[0]()
        return machine.products.start(form, registers, a, right(), adds(), machine.active(), site)

    return compute


@ptx("wgmma.fence", words="sync aligned")
def _fence_products(call: PtxCall) -> Compute:
    return lambda: _ignore(call.machine.products.warp_groups(call.machine.active()))


def _ignore(value: object) -> None:
    del value


@ptx("wgmma.commit_group", words="sync aligned")
def _commit_products(call: PtxCall) -> Compute:
    return lambda: call.machine.products.commit(call.machine.active())


@ptx("wgmma.wait_group", words="sync aligned")
def _wait_products(call: PtxCall) -> Compute:
    pending = call.immediate(0)
    return lambda: call.machine.products.wait(call.machine.active(), pending)
