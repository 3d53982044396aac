"""The barrier of a cluster, as its threads stand to it."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.clocks import Joint
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass


@dataclass
class ClusterBarrier:
    """The barrier of a cluster: arriving and waiting are two steps.

    `arrivals` is how often each thread has arrived, `ended` how many phases have.
    """

    arrivals: Array
    waiting: Array
    ended: int = 0
    joint: Joint | None = None
    done: Joint | None = None

    @staticmethod
    def of(threads: int) -> ClusterBarrier:
        """The barrier at the start of a cluster."""
        return ClusterBarrier(np.zeros(threads, np.int64), np.zeros(threads, np.bool_))
