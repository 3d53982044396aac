"""Stores by the copy engine are in memory for who is ordered behind a complete wait for them."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.interp.simt.bulk_stores import BulkStores
from tilewright.interp.simt.clocks import Clocks
from tilewright.interp.simt.faults import Fault, GlobalRace
from tilewright.interp.simt.memory import GlobalMemory
from tilewright.interp.simt.syntax import Site

WRITER, READER = 3, 70
SITE = Site(12, "cp.async.bulk.tensor")


class Subject:
    """An array of 64 halves, of which a thread stores those from 16 to 32 in its first group."""

    def __init__(self) -> None:
        self.clocks = Clocks(128)
        memory = GlobalMemory()
        self.base = memory.add("c", 128).base
        self.stores = BulkStores(self.clocks, memory)
        self.stores.start(self.halves(16, 32), 2, WRITER, 1, SITE)

    def halves(self, first: int, last: int) -> np.ndarray:
        """The addresses of halves."""
        return (self.base + 2 * np.arange(first, last)).astype(np.uint64)

    def read(self, first: int, last: int, thread: int) -> None:
        """Let a thread read halves."""
        places = self.halves(first, last)
        self.stores.check_read(places, 2, np.full(len(places), thread))

    def write(self, first: int, last: int, thread: int, *, is_sum: bool = False) -> None:
        """Let a thread write halves, or add to them."""
        places = self.halves(first, last)
        self.stores.check_write(places, 2, np.full(len(places), thread), is_sum=is_sum)


def test_nobody_reads_what_is_still_stored() -> None:
    subject = Subject()
    for thread in (WRITER, READER):
        with pytest.raises(
            Fault, match="reads offset 62 of c, which a store by the copy"
        ) as caught:
            subject.read(31, 40, thread)
        assert caught.value.kind is GlobalRace and "wait_group 0" in caught.value.hint


def test_what_lies_beside_it_may_be_read() -> None:
    subject = Subject()
    subject.read(0, 16, READER)
    subject.read(32, 64, READER)


def test_a_thread_knows_its_own_stores_behind_a_complete_wait() -> None:
    subject = Subject()
    subject.stores.complete(WRITER, 1)
    subject.read(16, 32, WRITER)
    with pytest.raises(Fault):
        subject.read(16, 32, READER)


def test_others_know_them_behind_a_barrier() -> None:
    subject = Subject()
    subject.stores.complete(WRITER, 1)
    subject.clocks.acquire(np.array([READER]), subject.clocks.release(np.array([WRITER])))
    subject.read(16, 32, READER)


def test_a_wait_for_an_earlier_group_is_too_few() -> None:
    subject = Subject()
    subject.stores.start(subject.halves(40, 48), 2, WRITER, 2, SITE)
    subject.stores.complete(WRITER, 1)
    subject.read(16, 32, WRITER)
    with pytest.raises(Fault):
        subject.read(40, 41, WRITER)


@pytest.mark.parametrize("thread", [WRITER, READER])
@pytest.mark.parametrize("is_sum", [False, True])
def test_nobody_writes_what_is_still_stored(thread: int, is_sum: bool) -> None:
    subject = Subject()
    with pytest.raises(Fault, match="writes offset 32 of c, which a store by the copy"):
        subject.write(0, 17, thread, is_sum=is_sum)
    subject.write(0, 16, thread, is_sum=is_sum)
    subject.write(32, 33, thread, is_sum=is_sum)


def test_a_thread_writes_behind_a_complete_wait() -> None:
    subject = Subject()
    subject.stores.complete(WRITER, 1)
    subject.write(16, 32, WRITER)
    with pytest.raises(Fault):
        subject.write(16, 32, READER)


def test_sums_of_threads_and_of_the_engine_keep_each_other() -> None:
    subject = Subject()
    subject.stores.start(subject.halves(40, 48), 2, WRITER, 2, SITE, is_sum=True)
    subject.write(40, 48, READER, is_sum=True)
    with pytest.raises(Fault):
        subject.write(40, 48, READER)
