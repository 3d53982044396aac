"""Vector clocks of a cta: which accesses of whom every thread is ordered after.

Every thread has a clock that ticks when it releases, that is when it arrives at a barrier. An
access of thread t at its clock c is ordered before thread u when `known[u, t] >= c`. What runs
asynchronously has columns of its own: an *agent* stands for the copies of one thread, the
products of one warp group, or what one mbarrier waits for.

`fenced` says the same of generic writes that `fence.proxy.async` has made visible to the
asynchronous proxy: those of threads, and behind them those of their copies (`cp.async`), which
write by the generic proxy as well. A fence is for what its thread wrote, and for all copies that it
knows to be there: who waited for copies of others shows them.

*Source*: PTX ISA 8.8, 8.9.1 "Causality order": a proxy fence stands anywhere on the way.

Lanes of one warp are separate threads: `bar.warp.sync` orders them, a shuffle or vote does not.
"""

from __future__ import annotations

import numpy as np

from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass

_WARP = 32
_SPARE = 16


@dataclass
class Joint:
    """What the threads that arrived somewhere knew together, taken over by those that wait."""

    known: Array
    fenced: Array

    def include(self, other: Joint) -> None:
        """Join what another one knew."""
        self.known = _joined(self.known, other.known)
        self.fenced = _joined(self.fenced, other.fenced)


def _joined(left: Array, right: Array) -> Array:
    """The later of two clocks for each column, of which one side may have fewer."""
    size = max(len(left), len(right))
    if len(left) < size:
        left = np.concatenate([left, np.zeros(size - len(left), np.int32)])
    np.maximum(left[: len(right)], right, out=left[: len(right)])
    return left


def span(threads: Array) -> Array | slice:
    """Ascending numbers as a slice where they follow each other: rows are then not copied."""
    first, last = int(threads[0]), int(threads[-1])
    return slice(first, last + 1) if last - first + 1 == len(threads) else threads


class Clocks:
    """The vector clocks of one cta."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.ids = np.arange(threads)
        self.generation = 0
        self.reset()

    def reset(self) -> None:
        """Begin another cta: every thread knows itself only."""
        self.known = np.zeros((self.threads, self.threads + _SPARE), np.int32)
        self.known[self.ids, self.ids] = 1
        self.fenced = np.zeros((self.threads, self.threads), np.int32)
        self.first_copy = -1
        self.agent_clocks: list[int] = []
        self.agents: dict[object, int] = {}
        # Counts the barriers that all threads waited at together: what happened before the
        # last one is ordered before everything since, without a look at the clocks.
        self.generation += 1

    def agent(self, key: object, count: int = 1) -> int:
        """The first of `count` columns of an agent."""
        found = self.agents.get(key)
        if found is not None:
            return found
        column = self.threads + len(self.agent_clocks)
        self.agent_clocks.extend([0] * count)
        missing = column + count - self.known.shape[1]
        if missing > 0:
            more = np.zeros((self.threads, missing + _SPARE), np.int32)
            self.known = np.concatenate([self.known, more], axis=1)
        self.agents[key] = column
        return column

    def copies(self) -> int:
        """The first of the columns of the copies of each thread, whose fences are known as well."""
        if self.first_copy < 0:
            self.first_copy = self.agent("cp.async of thread", self.threads)
            self.fenced = np.pad(self.fenced, ((0, 0), (0, self.threads)))
        return self.first_copy

    def fence_columns(self, writers: Array) -> Array:
        """The columns of `fenced` for writes of threads, or of their copies."""
        if self.first_copy < 0:
            return writers
        is_copy = (writers >= self.first_copy) & (writers < self.first_copy + self.threads)
        return np.where(is_copy, writers - self.first_copy + self.threads, writers)

    def tick_agent(self, column: int) -> int:
        """A new clock of an agent."""
        self.agent_clocks[column - self.threads] += 1
        return self.agent_clocks[column - self.threads]

    def clock(self, threads: Array) -> Array:
        """The current clocks of threads."""
        return self.known[threads, threads]

    def release(self, threads: Array) -> Joint:
        """What threads know, for others to acquire; what they do next is not part of it."""
        rows = span(threads)
        joint = Joint(self.known[rows].max(0), self.fenced[rows].max(0))
        self.known[threads, threads] += 1
        return joint

    def acquire(self, threads: Array, joint: Joint) -> None:
        """Order threads after what `joint` knows."""
        rows, size = span(threads), len(joint.known)
        self.known[rows, :size] = np.maximum(self.known[rows, :size], joint.known)
        size = len(joint.fenced)
        self.fenced[rows, :size] = np.maximum(self.fenced[rows, :size], joint.fenced)

    def complete(self, threads: Array, column: int, clock: int) -> None:
        """Order threads after what an agent did up to a clock."""
        self.known[threads, column] = np.maximum(self.known[threads, column], clock)

    def synchronize_warps(self, warps: Array) -> None:
        """Order the lanes of whole warps among each other."""
        for table in (self.known, self.fenced):
            rows = table.reshape(-1, _WARP, table.shape[1])
            rows[warps] = rows[warps].max(1, keepdims=True)
        lanes = (warps[:, None] * _WARP + np.arange(_WARP)).ravel()
        self.known[lanes, lanes] += 1

    def fence_proxy(self, threads: Array) -> None:
        """Make generic writes so far visible to the asynchronous proxy; see the module."""
        self.fenced[threads, threads] = self.known[threads, threads]
        if self.first_copy >= 0:
            known = self.known[threads, self.first_copy : self.first_copy + self.threads]
            shown = self.fenced[threads, self.threads :]
            self.fenced[threads, self.threads :] = np.maximum(shown, known)
        self.known[threads, threads] += 1
