"""PTX's mbarriers: arrivals, waits, and their places in other ctas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.intrinsics.async_copies import (
    arrive,
    by_address,
    initialize,
    test_parity,
)
from tilewright.interp.simt.ptx.parse import Address
from tilewright.interp.simt.ptx.registers import Read
from tilewright.interp.simt.ptx.rules import Compute, PtxCall, ptx
from tilewright.ir.op import Array
from tilewright.support.errors import KernelFault

_ORDERS = "shared shared::cta shared::cluster acquire release relaxed cta cluster"


@ptx("mbarrier.init", words="shared shared::cta")
def _initialize(call: PtxCall) -> Compute:
    address, count = call.address(0)[0], call.read(1, "u32")

    def compute() -> None:
        for place, threads in by_address(call.machine, address()):
            initialize(call.machine, place, int(count()[threads[0]]))

    return compute


@ptx("mbarrier.inval", words="shared shared::cta")
def _invalidate(call: PtxCall) -> Compute:
    address = call.address(0)[0]

    def compute() -> None:
        for place, _ in by_address(call.machine, address()):
            call.machine.synchronization.memory_barriers.pop(place, None)

    return compute


@ptx("mbarrier.arrive", "mbarrier.expect_tx", words=f"{_ORDERS} expect_tx")
def _arrive(call: PtxCall) -> Compute:
    machine, operands = call.machine, call.operands
    index = 0
    if not isinstance(operands[0], Address):
        index = 1
        call.writes(operands[0])
    address = call.address(index)[0]
    last: Read | None = None
    if len(operands) > index + 1:
        last = call.read(index + 1, "u32")
    announces, arrives = call.has("expect_tx"), call.instruction.opcode[1] == "arrive"

    def compute() -> Sequence[Array] | None:
        amount = last().astype(np.int64) if last is not None and announces else 0
        arrivals = int(arrives)
        if last is not None and not announces:
            arrivals = int(last()[machine.active()[0]])
        state = arrive(machine, address(), amount, arrivals)
        return [state] if index else None

    return compute


@ptx("mapa.shared::cluster")
def _peer_address(call: PtxCall) -> Compute:
    """The same place in the shared memory of another cta. *Raises*: KernelFault without one."""
    machine = call.machine
    address, rank = call.read(1, "u32"), call.read(2, "u32")
    call.writes(call.operands[0])

    def compute() -> Sequence[Array]:
        ranks = rank()
        if (ranks[machine.active()] >= machine.cluster).any():
            raise Fault(KernelFault, f"mapa names no cta of a cluster of {machine.cluster}")
        return [machine.peer_addresses(address(), ranks).astype(np.uint32)]

    return compute


@ptx("mbarrier.try_wait", "mbarrier.test_wait", words=f"{_ORDERS} parity")
def _test(call: PtxCall) -> Compute:
    if not call.has("parity"):
        raise call.unknown()
    call.writes(call.operands[0])
    address, parity = call.address(1)[0], call.read(2, "u32")
    return lambda: [test_parity(call.machine, address(), parity(), call.site)]
