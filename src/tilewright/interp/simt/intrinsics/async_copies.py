"""Asynchronous copies, mbarriers and the fences between proxies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.calls import Call, Compute, intrinsic
from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.syntax import Site
from tilewright.interp.simt.tensor_map import FIELDS
from tilewright.interp.simt.waited_ring import Awaited
from tilewright.ir.op import Array
from tilewright.support.errors import KernelFault, UnsupportedError


def by_address(machine: Machine, addresses: Array) -> list[tuple[int, Array]]:
    """The executing threads, by the mbarrier that they name."""
    threads = machine.active()
    named = addresses[threads]
    first = int(named[0])
    if (named == first).all():
        return [(first, threads)]
    return [(int(address), threads[named == address]) for address in np.unique(named)]


# A barrier of another cta has `space.cluster`, which the rules refuse: PTX says `mapa` for it.
_SCOPES = "relaxed scope cta cluster space"
_DIMS = "1d 2d 3d 4d 5d"


def _require_own_cta(call: Call) -> None:
    """Raise for an mbarrier that may be another cta's."""
    if "space.cluster" in call.name:
        raise UnsupportedError(f"{call.name}: mbarriers of other ctas are not simulated so")


# --- mbarriers ----------------------------------------------------------------------------------


@intrinsic("llvm.nvvm.mbarrier.init", words="shared")
def _initialize(call: Call) -> Compute:
    machine = call.machine

    def compute() -> None:
        for address, threads in by_address(machine, call.array(0)):
            initialize(machine, address, int(call.array(1)[threads[0]]))

    return compute


def initialize(machine: Machine, address: int, count: int) -> None:
    """Make an mbarrier of `count` arrivals."""
    machine.synchronization.initialize(address, count)
    machine.progress += 1


def arrive(machine: Machine, addresses: Array, num_bytes: Array | int, arrivals: int) -> Array:
    """Arrive and announce bytes; the state that comes back is opaque."""
    for address, threads in by_address(machine, addresses):
        amounts = np.broadcast_to(np.asarray(num_bytes), (machine.threads,))[threads]
        for amount in np.unique(amounts):
            chosen = threads[amounts == amount]
            machine.synchronization.arrive_at(address, chosen, int(amount), arrivals)
    machine.progress += 1
    return np.zeros(machine.threads, np.uint64)


@intrinsic("llvm.nvvm.mbarrier.arrive", words=f"shared expect tx {_SCOPES}")
def _arrive(call: Call) -> Compute:
    machine = call.machine
    _require_own_cta(call)
    if "expect" in call.name:
        return lambda: arrive(machine, call.array(0), call.array(1).astype(np.int64), 1)
    count = call.constant(1) if len(call.slots) > 1 else 1
    return lambda: arrive(machine, call.array(0), 0, count)


def test_parity(machine: Machine, addresses: Array, parity: Array, site: Site) -> Array:
    """Whether the phase of a parity has ended, per thread; threads for which not are parked."""
    return test_phase(machine, addresses, parity, site, None)


def test_phase(
    machine: Machine, addresses: Array, parity: Array, site: Site, ring: Awaited | None
) -> Array:
    """The same of waits for a slot of a ring, whose `parity` is the number of the phase itself."""
    result = np.zeros(machine.threads, np.bool_)
    for address, threads in by_address(machine, addresses):
        wanted = parity[threads]
        for number in np.unique(wanted):
            chosen = threads[wanted == number]
            phase = int(number.astype(np.int32))
            if ring is not None:
                machine.synchronization.require_near(address, phase, ring)
                machine.synchronization.note_wait(address, phase, ring, chosen, site)
            done = machine.synchronization.test(address, phase & 1, chosen, str(site))
            result[chosen] = done
    return result


@intrinsic(
    "llvm.nvvm.mbarrier.try.wait.parity", "llvm.nvvm.mbarrier.test.wait.parity", words=_SCOPES
)
def _test(call: Call) -> Compute:
    machine = call.machine
    if call.ring is None:
        return lambda: test_parity(machine, call.array(0), call.array(1), call.site)
    return lambda: test_phase(
        machine, call.array(0), machine.read(call.phase), call.site, call.ring
    )


# --- copies of single threads -------------------------------------------------------------------


def copy_async(call: Call) -> Compute:
    """`cp.async.{ca,cg}.shared.global.N`, with the bytes to read as third argument of `.s`."""
    machine = call.machine
    width = next(int(word) for word in call.name.split(".") if word in ("4", "8", "16"))

    def compute() -> None:
        threads = machine.active()
        sizes = np.full(len(threads), width)
        if len(call.slots) > 2:
            sizes = np.minimum(call.array(2)[threads].astype(np.int64), width)
        targets, sources = call.array(0)[threads], call.array(1)[threads]
        machine.copies.start(targets, sources, sizes, width, threads, call.site)
        machine.progress += 1

    return compute


for _name in ("ca.shared.global", "cg.shared.global"):
    intrinsic(f"llvm.nvvm.cp.async.{_name}", words="4 8 16 s")(copy_async)


def _on_active(function: Callable[[Machine, Array], None]) -> Callable[[Call], Compute]:
    def rule(call: Call) -> Compute:
        machine = call.machine
        return lambda: function(machine, machine.active())

    return rule


intrinsic("llvm.nvvm.cp.async.commit.group")(_on_active(lambda m, who: m.copies.commit(who)))
intrinsic("llvm.nvvm.cp.async.bulk.commit.group")(
    _on_active(lambda m, who: m.copies.commit_bulk(who))
)
for _name in (
    "fence.proxy.async",
    "fence.proxy.async.shared_cta",
    "fence.proxy.async.global",
):
    intrinsic("llvm.nvvm." + _name)(
        _on_active(lambda m, who: m.synchronization.clocks.fence_proxy(who))
    )


@intrinsic("llvm.nvvm.cp.async.wait.group")
def _wait(call: Call) -> Compute:
    machine, pending = call.machine, call.constant(0)
    return lambda: machine.copies.wait(machine.active(), pending)


# --- copies in bulk -----------------------------------------------------------------------------


@intrinsic("llvm.nvvm.cp.async.bulk.wait.group", words="read")
def _wait_bulk(call: Call) -> Compute:
    machine, pending = call.machine, call.constant(0)
    is_complete = "read" not in call.name.split(".")
    return lambda: machine.copies.wait_bulk(machine.active(), pending, is_complete=is_complete)


def _dims(name: str) -> int:
    return next(int(word[0]) for word in name.split(".") if word in ("1d", "2d", "3d", "4d", "5d"))


def _at(call: Call, index: int, thread: int) -> int:
    """An argument in one thread, as a signed number."""
    value = call.array(index)[thread]
    return int(value) if value.dtype.itemsize == 8 else int(value.astype(np.int32))


@intrinsic("llvm.nvvm.cp.async.bulk.tensor.g2s.tile", words=_DIMS)
@intrinsic("llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile", words=_DIMS)
def _load_box(call: Call) -> Compute:
    machine, dims = call.machine, _dims(call.name)
    is_of_cluster = "g2s.tile" in call.name and call.constant(len(call.slots) - 3) != 0

    def compute() -> None:
        for thread in machine.active():
            target, barrier, tensor_map = (_at(call, i, thread) for i in range(3))
            coordinates = tuple(_at(call, 3 + i, thread) for i in range(dims))
            ranks = np.array([machine.ranks[thread]])
            if is_of_cluster:
                ranks = _ranks_of(machine, _at(call, 3 + dims, thread))
            for rank in ranks:
                places = machine.peer_addresses(np.array([target, barrier]), rank)
                machine.copies.load_box(
                    int(places[0]), int(places[1]), tensor_map, coordinates, int(thread), call.site
                )
        machine.progress += 1

    return compute


def _ranks_of(machine: Machine, mask: int) -> Array:
    """The ctas of a multicast. *Raises*: KernelFault for one that the cluster has not."""
    ranks = np.flatnonzero([mask >> bit & 1 for bit in range(16)])
    if not len(ranks) or ranks[-1] >= machine.cluster:
        what = f"a multicast to ctas {ranks.tolist()} of a cluster of {machine.cluster}"
        raise Fault(KernelFault, what)
    return ranks


_REDUCTIONS = "add min max and or xor"


def _store_box(call: Call) -> Compute:
    machine, dims = call.machine, _dims(call.name)
    words = call.name.split(".")
    operation = words[words.index("reduce") + 1] if "reduce" in words else ""

    def compute() -> None:
        for thread in machine.active():
            source, tensor_map = _at(call, 0, thread), _at(call, 1, thread)
            coordinates = tuple(_at(call, 2 + i, thread) for i in range(dims))
            machine.copies.store_box(
                source, tensor_map, coordinates, operation, int(thread), call.site
            )
        machine.progress += 1

    return compute


intrinsic("llvm.nvvm.cp.async.bulk.tensor.s2g.tile", words=_DIMS)(_store_box)
intrinsic("llvm.nvvm.cp.async.bulk.tensor.reduce", words=f"tile {_REDUCTIONS} {_DIMS}")(_store_box)


# --- tensor maps that the program makes ---------------------------------------------------------


def replace_field(
    machine: Machine,
    space: int,
    addresses: Array,
    field: str,
    number: int,
    value: Array,
    site: Site,
) -> None:
    """Set one field, or entry `number` of it, of the tensor maps at addresses."""
    offset, width = FIELDS[field]
    places = addresses + np.uint64(offset + number * width)
    type_ = t.IntType(8 * width)
    machine.store(space, places, value.astype(f"u{width}"), type_, width, site)


@intrinsic(
    "llvm.nvvm.tensormap.replace",
    words="global address dim stride box element elemtype rank swizzle mode fill interleave layout",
)
def _replace(call: Call) -> Compute:
    machine = call.machine
    pointer = call.argument_type(0)
    assert isinstance(pointer, t.PointerType)
    space = pointer.space
    field = "_".join(call.name.split(".")[4:-1])
    has_number = len(call.slots) > 2
    number = call.constant(1) if has_number else 0
    last = len(call.slots) - 1

    def compute() -> None:
        value = call.array(last)
        replace_field(machine, space, call.array(0), field, number, value, call.site)

    return compute


@intrinsic("llvm.nvvm.fence.proxy.tensormap_generic.acquire", words="cta gpu sys")
def _acquire_map(call: Call) -> Compute:
    machine = call.machine
    return lambda: machine.copies.acquire_maps(call.array(0)[machine.active()], machine.active())


@intrinsic("llvm.nvvm.fence.proxy.tensormap_generic.release", words="cta gpu sys")
def _release_map(call: Call) -> Compute:
    return lambda: None


# --- what orders nothing that the simulator keeps apart -----------------------------------------


@intrinsic("llvm.nvvm.fence.mbarrier_init", words="release cluster")
@intrinsic("llvm.nvvm.setmaxnreg", words="inc dec sync aligned u32")
@intrinsic("llvm.nvvm.nanosleep")
def _nothing(call: Call) -> Compute:
    return lambda: None
