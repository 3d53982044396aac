"""What a report of a deadlock says of the mbarriers that threads wait for."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.synchronization import Synchronization
from tilewright.interp.simt.waited_ring import WaitedRing


def test_mbarriers_of_rings_are_called_by_the_ring_and_their_number() -> None:
    synchronization = Synchronization(64)
    for address in (512, 520, 1024):
        synchronization.initialize(address, 2)
        synchronization.memory_barriers[address].ended = 1
    synchronization.require_near(512, 0, WaitedRing("ab"))
    synchronization.require_near(520, 1, WaitedRing("ab"))
    threads = np.arange(32)
    assert synchronization.test(512, 0, threads, "the first slot")
    assert not synchronization.test(520, 1, threads, "the second slot")
    assert not synchronization.test(1024, 1, threads, "no ring")
    assert synchronization.describe() == (
        "mbarrier 1 of ring ab (shared address 520): phase 1 lacks 2 arrivals and 0 bytes; "
        "the mbarrier at shared address 1024: phase 1 lacks 2 arrivals and 0 bytes"
    )
    synchronization.reset()
    assert synchronization.rings == {}
