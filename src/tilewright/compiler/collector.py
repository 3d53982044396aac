"""A record of what a program asks to be compiled, kept while somebody wants it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from tilewright.compiler.request import CompileRequest

_COLLECTED: ContextVar[list[CompileRequest] | None] = ContextVar("requests", default=None)


def record_request(request: CompileRequest) -> None:
    """Note a request, where a collector is open."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected.append(request)


@contextmanager
def collected_requests() -> Generator[list[CompileRequest]]:
    """A list of every request that kernels make inside the block, cached or not, in order."""
    requests: list[CompileRequest] = []
    token = _COLLECTED.set(requests)
    try:
        yield requests
    finally:
        _COLLECTED.reset(token)
