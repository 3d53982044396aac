"""PTX's asynchronous copies, the tensor maps that programs make, and fences of proxies."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.intrinsics.async_copies import (
    by_address,
    replace_field,
)
from tilewright.interp.simt.ptx.memory import CACHE_WORDS, space_of_words
from tilewright.interp.simt.ptx.registers import Read
from tilewright.interp.simt.ptx.rules import Compute, PtxCall, ptx
from tilewright.interp.simt.statistics import WARP
from tilewright.interp.simt.tensor_map import FIELDS, MAP_BYTES

_BULK = (
    "1d 2d 3d 4d 5d tile global shared::cta shared::cluster bulk_group "
    "mbarrier::complete_tx::bytes L2::cache_hint"
)


# --- copies -------------------------------------------------------------------------------------


@ptx("cp.async.ca", "cp.async.cg", words=f"shared shared::cta global {CACHE_WORDS}")
def _copy(call: PtxCall) -> Compute:
    machine, site = call.machine, call.site
    target, source = call.address(0)[0], call.address(1)[0]
    width = call.immediate(2)
    sizes: Read | None = None
    if len(call.operands) > 3:
        sizes = call.read(3, "u32")

    def compute() -> None:
        threads = machine.active()
        count = np.full(len(threads), width)
        if sizes is not None:
            count = np.minimum(sizes()[threads].astype(np.int64), width)
        machine.copies.start(target()[threads], source()[threads], count, width, threads, site)
        machine.progress += 1

    return compute


@ptx("cp.async.commit_group")
def _commit_copies(call: PtxCall) -> Compute:
    return lambda: call.machine.copies.commit(call.machine.active())


@ptx("cp.async.wait_group")
def _wait_copies(call: PtxCall) -> Compute:
    pending = call.immediate(0)
    return lambda: call.machine.copies.wait(call.machine.active(), pending)


@ptx("cp.async.wait_all")
def _wait_all_copies(call: PtxCall) -> Compute:
    return lambda: call.machine.copies.wait_all(call.machine.active())


@ptx("cp.async.mbarrier.arrive", words="noinc shared shared::cta")
def _arrive_when_done(call: PtxCall) -> Compute:
    machine, address, counts = call.machine, call.address(0)[0], not call.has("noinc")

    def compute() -> None:
        for place, threads in by_address(machine, address()):
            machine.copies.arrive_when_done(place, threads, counts=counts)

    return compute


@ptx("cp.async.bulk.commit_group")
def _commit_bulk(call: PtxCall) -> Compute:
    return lambda: call.machine.copies.commit_bulk(call.machine.active())


@ptx("cp.async.bulk.wait_group", words="read")
def _wait_bulk(call: PtxCall) -> Compute:
    copies, pending = call.machine.copies, call.immediate(0)
    is_complete = not call.has("read")
    return lambda: copies.wait_bulk(call.machine.active(), pending, is_complete=is_complete)


def _tensor_operand(call: PtxCall, index: int) -> tuple[Read, list[Read]]:
    base, operand = call.address(index)
    return base, [call.registers.reader(c, "s32") for c in operand.coordinates]


@ptx("cp.async.bulk.tensor", words=_BULK)
def _copy_box(call: PtxCall) -> Compute:
    if call.words[4].startswith("shared"):
        return _load_box(call)
    return _store_box(call, "")


@ptx("cp.reduce.async.bulk.tensor", words=f"{_BULK} add min max and or xor")
def _reduce_box(call: PtxCall) -> Compute:
    operation = call.one_of("add", "min", "max", "and", "or", "xor")
    if not operation:
        raise call.unknown()
    return _store_box(call, operation)


def _load_box(call: PtxCall) -> Compute:
    machine, site = call.machine, call.site
    target, barrier = call.address(0)[0], call.address(2)[0]
    tensor_map, coordinates = _tensor_operand(call, 1)

    def compute() -> None:
        places = [read() for read in coordinates]
        for thread in machine.active():
            machine.copies.load_box(
                int(target()[thread]),
                int(barrier()[thread]),
                int(tensor_map()[thread]),
                tuple(int(place[thread]) for place in places),
                int(thread),
                site,
            )
        machine.progress += 1

    return compute


def _store_box(call: PtxCall, operation: str) -> Compute:
    machine, site = call.machine, call.site
    tensor_map, coordinates = _tensor_operand(call, 0)
    source = call.address(1)[0]

    def compute() -> None:
        places = [read() for read in coordinates]
        for thread in machine.active():
            machine.copies.store_box(
                int(source()[thread]),
                int(tensor_map()[thread]),
                tuple(int(place[thread]) for place in places),
                operation,
                int(thread),
                site,
            )
        machine.progress += 1

    return compute


@ptx("cp.async.bulk.shared::cta", "cp.async.bulk.shared::cluster", words=_BULK)
def _load_bytes(call: PtxCall) -> Compute:
    machine, site = call.machine, call.site
    target, source = call.address(0)[0], call.address(1)[0]
    size, barrier = call.read(2, "u32"), call.address(3)[0]

    def compute() -> None:
        operands = (target(), barrier(), source(), size())
        for thread in machine.active():
            place, bar, start, count = (int(values[thread]) for values in operands)
            machine.copies.load_bytes(place, bar, start, count, int(thread), site)
        machine.progress += 1

    return compute


@ptx("cp.async.bulk.global", words=_BULK)
def _store_bytes(call: PtxCall) -> Compute:
    machine, site = call.machine, call.site
    target, source, size = call.address(0)[0], call.address(1)[0], call.read(2, "u32")

    def compute() -> None:
        operands = (target(), source(), size())
        for thread in machine.active():
            place, start, count = (int(values[thread]) for values in operands)
            machine.copies.store_bytes(place, start, count, int(thread), site)
        machine.progress += 1

    return compute


# --- tensor maps that the program makes ---------------------------------------------------------


@ptx("tensormap.replace.tile", words=None)
def _replace(call: PtxCall) -> Compute:
    machine, site, space = call.machine, call.site, space_of_words(call)
    field = call.words[2]
    if field not in FIELDS:
        raise call.unknown()
    address = call.address(0)[0]
    number = call.immediate(1) if len(call.operands) > 2 else 0
    value = call.read(len(call.operands) - 1, call.kinds()[-1])
    return lambda: replace_field(machine, space, address(), field, number, value(), site)


@ptx("tensormap.cp_fenceproxy", words=None)
def _publish(call: PtxCall) -> Compute:
    machine, site = call.machine, call.site
    target, source = call.address(0)[0], call.address(1)[0]

    def compute() -> None:
        leaders = machine.require_whole_warps("tensormap.cp_fenceproxy") * WARP
        data = machine.gather(t.SHARED, source()[leaders], leaders, MAP_BYTES, 64, site)
        machine.scatter(t.GLOBAL, target()[leaders], leaders, data, 64, site)

    return compute


@ptx("fence.proxy.tensormap::generic", words="acquire release cta gpu sys")
def _order_maps(call: PtxCall) -> Compute:
    machine = call.machine
    if call.has("release"):
        return lambda: None
    address = call.address(0)[0]
    return lambda: machine.copies.acquire_maps(address()[machine.active()], machine.active())


# --- fences and hints ---------------------------------------------------------------------------


@ptx("fence.proxy.async", "fence.proxy.async.shared::cta", "fence.proxy.async.global")
def _fence_proxy(call: PtxCall) -> Compute:
    machine = call.machine
    return lambda: machine.synchronization.clocks.fence_proxy(machine.active())


@ptx("fence.mbarrier_init", words="release cluster")
@ptx("setmaxnreg", words="inc dec sync aligned")
@ptx("griddepcontrol", words="wait launch_dependents")
@ptx("nanosleep")
def _nothing(call: PtxCall) -> Compute:
    return lambda: None
