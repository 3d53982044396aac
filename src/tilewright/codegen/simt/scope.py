"""The scope of emission: the threads that run what is being emitted, as one program of their own.

Thread, warp and lane, the barrier, scratch and shared tiles, and values computed once belong to
the scope that a partition opens. Rules know no other threads, so that a body is emitted in the
same way for a whole cta and for the warps of one role.
"""

from __future__ import annotations

from typing import Protocol

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.index import ThreadIdentity, ThreadIndex
from tilewright.codegen.simt.partition import Partition
from tilewright.support.errors import InternalError


class ScopeServices(ThreadIdentity, Protocol):
    """What a scope asks of a target."""

    def barrier(
        self, fn: FunctionBuilder, number: str, threads: int | None, attached: str = ""
    ) -> None:
        """Wait at a named barrier (i32) for so many threads; None: for all of the cta.

        `attached` is metadata.
        """
        ...

    def warp_barrier(self, fn: FunctionBuilder) -> None:
        """Wait for the lanes of the warp."""
        ...


class Scope:
    """The threads of one group of a partition, and what they share among themselves only."""

    def __init__(self, fn: FunctionBuilder, target: ScopeServices, partition: Partition) -> None:
        self.partition = partition
        self.index = ThreadIndex.start(fn, target, partition)
        self._fn = fn
        self._target = target
        self._own_start = ""

    @property
    def warps(self) -> int:
        """How many warps run the body together."""
        return self.partition.warps

    @property
    def num_threads(self) -> int:
        """How many threads run the body together."""
        return self.partition.warps * self._target.lanes

    def thread(self) -> str:
        """The number of this thread among them, i32."""
        lanes = self._target.lanes
        lane_bits, warp_bits = lanes.bit_length() - 1, (self.warps - 1).bit_length()
        lane = [1 << bit for bit in range(lane_bits)]
        return self.index.linear(self._fn, lane, [lanes << bit for bit in range(warp_bits)])

    def barrier(self) -> None:
        """Wait for all warps of the scope; their shared accesses before are done after."""
        part = self.partition
        if part.is_elected:
            raise InternalError(
                "one thread of a role waits for the others, which left its body out"
            )
        if part.warps == 1:
            self._target.warp_barrier(self._fn)
        elif part.is_cta:
            self._target.barrier(self._fn, str(part.barrier), None)
        else:
            threads = part.warps * self._target.lanes
            self._target.barrier(self._fn, self._barrier_number(), threads)

    def _barrier_number(self) -> str:
        """The named barrier of this thread's replica, i32."""
        part = self.partition
        replica = self.index.replica(self._fn)
        if replica == "0" or part.barrier == 0:
            return str(part.barrier) if replica == "0" else replica
        return self._fn.prologue_value(f"add i32 {replica}, {part.barrier}")

    def shared_byte(self, offset: int, base: str = "0") -> str:
        """The byte of shared memory that is place `offset` of the scope's own, and `base` on.

        *Why not the place itself*: each replica has scratch and tiles of its own.
        """
        start = self._replica_start()
        if start != "0":
            base = start if base == "0" else self._fn.value(f"add nuw nsw i32 {base}, {start}")
        place = offset + self.partition.shared_start
        if base == "0":
            return str(place)
        return base if place == 0 else self._fn.value(f"add nuw nsw i32 {base}, {place}")

    def _replica_start(self) -> str:
        """The bytes of the replicas before this thread's, i32."""
        if not self._own_start:
            replica, size = self.index.replica(self._fn), self.partition.shared_bytes
            if replica == "0" or size == 0:
                self._own_start = "0"
            else:
                self._own_start = self._fn.prologue_value(f"mul nuw nsw i32 {replica}, {size}")
        return self._own_start


def no_scope() -> InternalError:
    """What is wrong where a rule runs outside of every scope."""
    return InternalError("nothing says which threads run what is emitted: no scope is open")
