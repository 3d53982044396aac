"""Messages between a process that wants kernels compiled and the server that compiles them.

A frame is a job's number (u32), a kind (u8), the length of its data (u64), and the data. The
integers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

# To the server: compile what `worker.serve` takes, or stop with it.
COMPILE, CANCEL = 0, 1
# From the server: effects as JSON, printed text, an answer of `worker.serve`, or why there is none.
EFFECTS, PRINTED, ANSWER, FAILURE = 2, 3, 4, 5
_HEAD = struct.Struct("<IBQ")


def frame(number: int, kind: int, data: bytes = b"") -> bytes:
    """One frame as bytes."""
    return _HEAD.pack(number, kind, len(data)) + data


class FrameBuffer:
    """Bytes as they arrive, and the frames that are whole."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Take bytes in, and give the frames that they complete: number, kind and data."""
        self._bytes += data
        while len(self._bytes) >= _HEAD.size:
            number, kind, length = _HEAD.unpack_from(self._bytes)
            end = _HEAD.size + length
            if len(self._bytes) < end:
                return
            body = bytes(self._bytes[_HEAD.size : end])
            del self._bytes[:end]
            yield number, kind, body
