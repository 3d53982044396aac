"""What can go wrong in a simulated program, and how it is reported with its place."""

from __future__ import annotations

from tilewright.interp.simt.syntax import Site
from tilewright.support.errors import DataRace, KernelFault


class DivergentCollective(KernelFault):
    """A warp-wide or cta-wide operation was executed by a part of its threads."""


class SharedRace(DataRace):
    """Two threads of a program access shared memory without an order, and one of them writes."""

    help = "a barrier must lie between the two accesses"


class GlobalRace(DataRace):
    """Two threads of a program access global memory without an order, and one of them writes."""

    help = (
        "put tl.debug_barrier() between two accesses; elements that one store writes need places "
        "of their own, or atomics"
    )


class ProxyRace(DataRace):
    """The asynchronous proxy reads shared memory that generic stores wrote without a fence."""

    help = "every writing thread needs fence.proxy.async, then a barrier, before the read"


class UnfinishedOperation(KernelFault):
    """The result of an asynchronous operation is used before the wait for it."""


class StepLimit(KernelFault):
    """The program ran for too long."""


class Fault(Exception):
    """A fault on its way to the place that knows the instruction."""

    def __init__(self, kind: type[KernelFault], message: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint

    def at(self, site: Site, cta: tuple[int, int, int]) -> KernelFault:
        """The error to raise, with the instruction and the program."""
        span = site.source if site.source is not None and site.source.file else None
        return self.kind(f"{self.message}\n  in program {cta}, {site}", hint=self.hint, span=span)
