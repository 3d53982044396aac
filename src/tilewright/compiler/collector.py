"""A record of what a program asks to be compiled, kept while somebody wants it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.program import Specialization
from tilewright.runtime.launcher import GATE
from tilewright.support.dataclass import dataclass
from tilewright.support.options import CompileOptions


@dataclass(frozen=True)
class CompileCall:
    """What was to be compiled, before any machine was asked for: of this, requests are made."""

    source: KernelSource
    specialization: Specialization
    options: CompileOptions


_CALLS: ContextVar[list[CompileCall] | None] = ContextVar("calls", default=None)


def record_call(call: CompileCall) -> None:
    """Note what a request is about to be made of, where a collector is open."""
    calls = _CALLS.get()
    if calls is not None:
        calls.append(call)


@contextmanager
def collected_calls() -> Generator[list[CompileCall]]:
    """A list of what every request inside the block was made of, in order."""
    calls: list[CompileCall] = []
    token = _CALLS.set(calls)
    try:
        # A native launcher of this machine may ignore options that another machine has.
        with GATE.closed():
            yield calls
    finally:
        _CALLS.reset(token)
