"""An `os` module whose system calls fail, or kill the process, where a test says."""

from __future__ import annotations

import os
from collections.abc import Callable

STEPS = frozenset(
    ("mkdir", "open", "fstat", "read", "write", "fsync", "close", "replace")
    + ("utime", "unlink", "rmdir", "scandir")
)


class FaultyOs:
    """`os` with `before(step, count)` and `after(step, count)` called around each step.

    `count` numbers the steps from 0. A hook that raises replaces the call or its result.
    `half_writes` makes each write stop halfway, as a full disk or a signal does.
    """

    def __init__(
        self,
        before: Callable[[str, int], None] = lambda step, count: None,
        after: Callable[[str, int], None] = lambda step, count: None,
        half_writes: bool = False,
    ) -> None:
        self.count = 0
        self._before = before
        self._after = after
        self._half_writes = half_writes

    def __getattr__(self, name: str) -> object:
        real = getattr(os, name)
        return self._wrapped(name, real) if name in STEPS else real

    def _wrapped(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            count = self.count
            self.count += 1
            try:
                self._before(name, count)
            except OSError:
                if name == "close":  # a failed close has closed
                    real(*args, **kwargs)
                raise
            if name == "write" and self._half_writes:
                file, data = args
                args = (file, memoryview(data)[: (len(data) + 1) // 2])  # pyright: ignore[reportArgumentType]
            result = real(*args, **kwargs)
            try:
                self._after(name, count)
            except OSError:
                _release(result if name in ("open", "scandir") else None)
                raise
            return result

        return call


def _release(result: object) -> None:
    """Close what a call returned whose result is thrown away."""
    if isinstance(result, int):
        os.close(result)
    elif result is not None:
        result.close()  # pyright: ignore[reportAttributeAccessIssue]
