"""The barrier of a cluster, as its threads stand to it."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tilewright.interp.simt.clocks import Joint
from tilewright.interp.simt.faults import Fault
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import KernelFault


@dataclass
class ClusterBarrier:
    """The barrier of a cluster: arriving and waiting are two steps.

    `arrivals` is how often each thread has arrived, `waited` for how many phases it has waited,
    `ended` how many have ended. `reached` has the arrivals of who last reached into a cta, by rank.
    """

    arrivals: Array
    waiting: Array
    waited: Array
    reached: dict[int, int] = field(default_factory=dict[int, int])
    ended: int = 0
    joint: Joint | None = None
    done: Joint | None = None

    @staticmethod
    def of(threads: int) -> ClusterBarrier:
        """The barrier at the start of a cluster."""
        arrivals, waited = (np.zeros(threads, np.int64) for _ in range(2))
        return ClusterBarrier(arrivals, np.zeros(threads, np.bool_), waited)

    def reach(self, threads: Array, rank: int) -> None:
        """Threads reach into the cta of another rank. *Raises*: KernelFault before it has begun."""
        if not self.waited[threads].all():
            what = f"reaches into the program of rank {rank} of its cluster"
            raise Fault(KernelFault, f"a thread {what} before it has waited for that to begin")
        last = int(self.arrivals[threads].max())
        self.reached[rank] = max(last, self.reached.get(rank, 0))

    def require_met(self, rank: int, threads: slice) -> None:
        """Hold the end of a cta to what others do in it. *Raises*: KernelFault."""
        if self.reached.get(rank, -1) >= int(self.waited[threads].max()):
            what = f"the program of rank {rank} of its cluster ends"
            raise Fault(KernelFault, f"{what} while another one may still reach into it")
