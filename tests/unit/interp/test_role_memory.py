"""Roles that share memory: what a wait orders, and what no wait has ordered is a race."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from tilewright.interp.role_clocks import Knowledge
from tilewright.interp.shared_memory import RunningProduct, SharedMemory
from tilewright.interp.simt.faults import Fault, ProxyRace, SharedRace, UnfinishedOperation
from tilewright.support.errors import KernelFault

LOAD, MATH, OTHER = range(3)
SLOT = np.arange(8)
FULL, EMPTY = 0, 1


def shared(*, full: int = 1, empty: int = 1) -> SharedMemory:
    """Memory of a producer and two consumers, with mbarriers of so many arrivals."""
    memory = SharedMemory(True, ("load", "math 0", "math 1"))
    memory.reserve(16)
    memory.make_barrier(FULL, full)
    memory.make_barrier(EMPTY, empty)
    return memory


def put(memory: SharedMemory, value: int) -> None:
    """The producer starts a load of a slot."""
    with memory.acting(LOAD):
        memory.arrive(FULL, SLOT.size, is_whole=False)
        memory.load(FULL, SLOT, np.full(SLOT.size, value, np.uint8))


def took(memory: SharedMemory, role: int, phase: int, *, by_wgmma: bool = False) -> int:
    """A consumer waits for a slot, and what it reads."""
    with memory.acting(role):
        assert memory.has_ended(FULL, phase)
        return int(memory.fetch(SLOT, is_async=by_wgmma)[0][0])


def faults(kind: type[Exception], match: str, act: Callable[[], object]) -> None:
    """Assert that something is a fault of a kind."""
    with pytest.raises(Fault, match=match) as caught:
        act()
    assert caught.value.kind is kind


# --- rings ---


@pytest.mark.parametrize("by_wgmma", [False, True])
def test_a_slot_goes_round_between_full_and_empty(by_wgmma: bool) -> None:
    memory = shared()
    for turn in range(5):
        with memory.acting(LOAD):
            assert turn == 0 or memory.has_ended(EMPTY, turn - 1)
        put(memory, turn)
        assert took(memory, MATH, turn, by_wgmma=by_wgmma) == turn
        with memory.acting(MATH):
            memory.arrive(EMPTY)


def test_a_load_is_not_there_before_the_wait() -> None:
    memory = shared()
    put(memory, 1)
    with memory.acting(MATH):
        faults(UnfinishedOperation, "still brings", lambda: memory.fetch(SLOT))


def test_the_wait_of_one_role_is_not_that_of_another() -> None:
    memory = shared()
    put(memory, 1)
    took(memory, MATH, 0)
    with memory.acting(OTHER):
        faults(SharedRace, "by a copy that math 1 did not wait for", lambda: memory.fetch(SLOT))
        assert memory.has_ended(FULL, 0)
        memory.fetch(SLOT)


def test_a_slot_that_nobody_gave_back_is_not_filled() -> None:
    memory = shared()
    put(memory, 1)
    took(memory, MATH, 0)
    faults(SharedRace, "by a copy that load did not wait for", lambda: put(memory, 2))


def test_every_replica_gives_the_slot_back() -> None:
    memory = shared(empty=2)
    put(memory, 1)
    for role in (MATH, OTHER):
        took(memory, role, 0)
    with memory.acting(MATH):
        memory.arrive(EMPTY)
    with memory.acting(LOAD):
        assert not memory.has_ended(EMPTY, 0)
    with memory.acting(OTHER):
        memory.arrive(EMPTY)
    with memory.acting(LOAD):
        assert memory.has_ended(EMPTY, 0)
    put(memory, 2)


def test_one_arrival_too_few_in_the_count_lets_the_producer_in_too_early() -> None:
    memory = shared(empty=1)
    put(memory, 1)
    for role in (MATH, OTHER):
        took(memory, role, 0)
    with memory.acting(MATH):
        memory.arrive(EMPTY)
    with memory.acting(LOAD):
        assert memory.has_ended(EMPTY, 0)
    faults(SharedRace, "read by math 1", lambda: put(memory, 2))


def test_a_slot_is_not_given_back_while_a_product_reads_it() -> None:
    memory = shared()
    put(memory, 1)
    took(memory, MATH, 0)
    with memory.acting(MATH):
        memory.start_product(RunningProduct([SLOT], np.zeros(1), None))
        memory.arrive(EMPTY)
    with memory.acting(LOAD):
        assert memory.has_ended(EMPTY, 0)
    faults(UnfinishedOperation, "product still reads", lambda: put(memory, 2))


def test_a_product_that_ends_behind_the_release_is_a_race_nevertheless() -> None:
    memory = shared()
    put(memory, 1)
    took(memory, MATH, 0)
    with memory.acting(MATH):
        memory.start_product(RunningProduct([SLOT], np.zeros(1), None))
        memory.arrive(EMPTY)
        memory.wait_products(0)
    with memory.acting(LOAD):
        assert memory.has_ended(EMPTY, 0)
    faults(SharedRace, "read by math 0", lambda: put(memory, 2))


def test_one_thread_gives_back_what_was_read_before_its_roles_barrier_only() -> None:
    for has_barrier in (False, True):
        memory = shared()
        put(memory, 1)
        took(memory, MATH, 0)
        with memory.acting(MATH):
            if has_barrier:
                memory.barrier()
            memory.arrive(EMPTY, is_whole=False)
        with memory.acting(LOAD):
            assert memory.has_ended(EMPTY, 0)
        if has_barrier:
            put(memory, 2)
        else:
            faults(SharedRace, "read by math 0", lambda memory=memory: put(memory, 2))


def test_more_arrivals_than_counted_are_a_fault() -> None:
    memory = shared()
    with memory.acting(LOAD):
        memory.arrive(FULL, 8)
        faults(KernelFault, "0 of 8 bytes are on their way", lambda: memory.arrive(FULL, 8))


def test_a_barrier_that_was_never_made_is_a_fault() -> None:
    faults(KernelFault, "mbarrier 7 was never made", lambda: shared().arrive(7))


@pytest.mark.parametrize(("ended", "phase"), [(2, 0), (3, 0), (0, 1), (1, 3)])
def test_a_wait_that_parity_would_confuse_is_a_fault(ended: int, phase: int) -> None:
    memory = shared()
    for _ in range(ended):
        memory.arrive(EMPTY)
    faults(KernelFault, f"phase {phase} of mbarrier 1", lambda: memory.has_ended(EMPTY, phase))


# --- barriers of a role ---


def test_the_barrier_of_one_role_orders_no_other() -> None:
    memory = shared()
    with memory.acting(MATH):
        memory.write(SLOT, SLOT.astype(np.uint8), None)
        memory.barrier()
        memory.fetch(SLOT)
    with memory.acting(OTHER):
        memory.barrier()
        faults(SharedRace, "written by math 0", lambda: memory.fetch(SLOT))


# --- proxies ---


@pytest.mark.parametrize("fence", ["before", "behind", "by the reader", "none"])
def test_another_roles_store_engine_sees_what_was_fenced_before_the_arrival(fence: str) -> None:
    memory = shared()
    with memory.acting(MATH):
        memory.write(SLOT, SLOT.astype(np.uint8), None)
        if fence == "before":
            memory.fence()
        memory.arrive(EMPTY)
        if fence == "behind":
            memory.fence()
    with memory.acting(LOAD):
        assert memory.has_ended(EMPTY, 0)
        if fence == "by the reader":
            memory.fence()
            memory.barrier()
        if fence == "before":
            memory.start_store(SLOT)
            memory.end_stores()
        else:
            faults(ProxyRace, "no fence has shown", lambda: memory.start_store(SLOT))


def test_copies_and_products_of_roles_are_counted_apart() -> None:
    memory = shared()
    with memory.acting(MATH):
        memory.start_copy(SLOT, SLOT.astype(np.uint8))
        memory.commit_copies()
    with memory.acting(OTHER):
        memory.wait_copies(0)
        assert memory.products == []
        faults(UnfinishedOperation, "still brings", lambda: memory.fetch(SLOT))
    with memory.acting(MATH):
        memory.wait_copies(0)
        memory.barrier()
        memory.fetch(SLOT)


# --- against what happens before what, told otherwise ---


@dataclass
class Graph:
    """Two warps a role; every event with all that happens before it. Roles act as a whole."""

    num_roles: int
    before: list[set[int]] = field(default_factory=list)
    last: dict[tuple[int, int], int] = field(default_factory=dict)
    accesses: list[tuple[int, int, bool]] = field(default_factory=list)

    def event(self, role: int, warp: int, after: set[int] | None = None) -> int:
        """An event of a warp, behind its last one and `after`."""
        number, past = len(self.before), set(after or ())
        if (role, warp) in self.last:
            previous = self.last[role, warp]
            past |= self.before[previous] | {previous}
        self.before.append(past)
        self.last[role, warp] = number
        return number

    def past(self, role: int, warps: tuple[int, ...]) -> set[int]:
        """What warps have done, and what they know of."""
        events = [self.event(role, warp) for warp in warps]
        return {e for event in events for e in self.before[event] | {event}}

    def races(self, role: int, byte: int, writes: bool) -> bool:
        """Both warps access a byte: whether one conflicts with an access before."""
        events = [self.event(role, warp) for warp in (0, 1)]
        bad = any(
            other not in self.before[event]
            for other, place, wrote in self.accesses
            for event in events
            if place == byte and (wrote or writes)
        )
        self.accesses += [(event, byte, writes) for event in events]
        return bad


@pytest.mark.parametrize("seed", range(40))
def test_random_roles_race_where_nothing_happens_before(seed: int) -> None:
    random, roles = Random(seed), 3
    found = 0
    for _ in range(20):
        memory, graph = SharedMemory(True, ("a", "b", "c")), Graph(roles)
        memory.reserve(3)
        memory.write(np.arange(3), np.zeros(3, np.uint8), None)
        for event in (graph.races(0, byte, True) for byte in range(3)):
            assert not event
        tokens: list[tuple[Knowledge, set[int]]] = []
        for _ in range(60):
            role, byte = random.randrange(roles), random.randrange(3)
            action = random.choice(("read", "write", "barrier", "whole", "part", "acquire"))
            if action in ("read", "write"):
                expected, place = graph.races(role, byte, action == "write"), np.array([byte])
                try:
                    with memory.acting(role):
                        if action == "read":
                            memory.fetch(place)
                        else:
                            memory.write(place, np.zeros(1, np.uint8), None)
                    raced = False
                except Fault as fault:
                    raced = fault.kind is SharedRace
                assert raced == expected
                if raced:
                    found += 1
                    break
            elif action == "barrier":
                memory.clocks.barrier(role)
                past = graph.past(role, (0, 1))
                for warp in (0, 1):
                    graph.event(role, warp, past)
            elif action == "acquire" and tokens:
                told, past = random.choice(tokens)
                memory.clocks.acquire(role, told)
                for warp in (0, 1):
                    graph.event(role, warp, past)
            elif action in ("whole", "part"):
                is_whole = action == "whole"
                told = memory.clocks.release(role, is_whole=is_whole)
                tokens.append((told, graph.past(role, (0, 1) if is_whole else (0,))))
    assert found


@pytest.mark.parametrize("seed", range(20))
def test_one_role_is_told_what_a_fence_and_then_a_barrier_have_shown(seed: int) -> None:
    """What is written is hidden, then fenced, then shown, however events are mixed."""
    random, place = Random(seed), np.array([0])
    found = 0
    for _ in range(50):
        memory, state, is_old = SharedMemory(True), "shown", True
        memory.reserve(1)
        memory.write(place, np.zeros(1, np.uint8), None)
        memory.fence()
        memory.barrier()
        for _ in range(30):
            action = random.choice(("write", "scratch", "fence", "barrier", "read"))
            if action == "fence":
                memory.fence()
                state = "fenced" if state == "hidden" else state
            elif action == "barrier":
                memory.barrier()
                state, is_old = "shown" if state == "fenced" else state, True
            elif action == "read" and is_old:
                if state != "shown":
                    faults(ProxyRace, "no fence", lambda m=memory: m.fetch(place, is_async=True))
                    found += 1
                    break
                memory.fetch(place, is_async=True)
                memory.barrier()
            elif action == "write" and is_old:
                memory.write(place, np.zeros(1, np.uint8), None)
                state, is_old = "hidden", False
            elif action == "scratch" and is_old:
                memory.pass_through(0, 1)
                memory.barrier()
                memory.write(place, np.zeros(1, np.uint8), None)
                state, is_old = "hidden", False
    assert found
