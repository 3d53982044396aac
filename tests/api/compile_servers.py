"""Compile servers that go wrong on purpose."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

from tilewright.compiler import client

# Runs the server with a `serve` that first looks at the message.
_CODE = """
import os, sys, time
sys.path[:0] = {path!r}
from tilewright.compiler import server
real = server.serve
def serve(message, observe=None):
    if {marker!r} in message:
        {deed}
    return real(message, observe)
server.serve = serve
server.main()
"""
DIE = "os.write(2, b'LLVM ERROR: no'); os.abort()"
HANG = "time.sleep(600)"


@contextmanager
def server_that(deed: str, marker: bytes, target: str = "cpu") -> Generator[client.Client]:
    """A block whose compile server does `deed` on requests that contain `marker`."""
    code = _CODE.format(path=sys.path, marker=marker, deed=deed)
    made = client.Client(target, [sys.executable, "-c", code])
    client.stop_servers()
    client._CLIENTS[target] = (os.getpid(), made)
    try:
        yield made
    finally:
        client.stop_servers()
