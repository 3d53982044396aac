"""PTX's asynchronous instructions: wgmma, mbarriers, copies, fences of proxies."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.fragments import OPERAND_DTYPES
from tilewright.interp.simt.in_flight import InFlight
from tilewright.interp.simt.intrinsics.async_copies import (
    arrive,
    by_address,
    initialize,
    replace_field,
    test_parity,
)
from tilewright.interp.simt.products import ProductForm
from tilewright.interp.simt.ptx.memory import CACHE_WORDS, space_of_words
from tilewright.interp.simt.ptx.parse import Address, Immediate, PtxOperand
from tilewright.interp.simt.ptx.registers import Read
from tilewright.interp.simt.ptx.rules import Compute, PtxCall, ptx
from tilewright.interp.simt.statistics import WARP
from tilewright.interp.simt.tensor_map import FIELDS, MAP_BYTES
from tilewright.ir.op import Array
from tilewright.support.errors import KernelFault

_SHAPE = re.compile(r"m64n(\d+)k\d+$")
_ORDERS = "shared shared::cta shared::cluster acquire release relaxed cta cluster"
_ACCUMULATORS = ("f32", "f16", "s32")
_BULK = (
    "1d 2d 3d 4d 5d tile global shared::cta shared::cluster bulk_group "
    "mbarrier::complete_tx::bytes L2::cache_hint"
)


def _immediate(operand: PtxOperand) -> int:
    assert isinstance(operand, Immediate)
    return operand.value


# --- products -----------------------------------------------------------------------------------


def _form(call: PtxCall, *, a_in_registers: bool) -> ProductForm:
    """What the modifiers and the trailing immediates say."""
    shape = _SHAPE.match(call.words[3])
    if call.words[1:3] != ("sync", "aligned") or shape is None or len(call.words) != 7:
        raise call.unknown()
    accumulator, a, b = call.words[4:]
    if accumulator not in _ACCUMULATORS or not {a, b} <= OPERAND_DTYPES.keys():
        raise call.unknown()
    flags = [_immediate(operand) for operand in call.operands[4:]]
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
    pending = _immediate(call.operands[0])
    return lambda: call.machine.products.wait(call.machine.active(), pending)


# --- mbarriers ----------------------------------------------------------------------------------


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


# --- copies -------------------------------------------------------------------------------------


@ptx("cp.async.ca", "cp.async.cg", words=f"shared shared::cta global {CACHE_WORDS}")
def _copy(call: PtxCall) -> Compute:
    machine, site = call.machine, call.site
    target, source = call.address(0)[0], call.address(1)[0]
    width = _immediate(call.operands[2])
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
    pending = _immediate(call.operands[0])
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
    pending = _immediate(call.operands[0])
    return lambda: call.machine.copies.wait_bulk(call.machine.active(), pending)


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
    number = _immediate(call.operands[1]) if len(call.operands) > 2 else 0
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
