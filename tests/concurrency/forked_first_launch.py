"""Forks while another thread launches for the first time; every child launches too."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np

import tilewright
import tilewright.language as tl

# A child that waits for a lock that nobody holds ends by this.
_LIMIT_S = 120


@tilewright.jit
def double(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at) * 2)


def launch(size: int) -> None:
    """Launch, and hold the result to what it must be."""
    x, out = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
    double[(1,)](x, out, N=size)
    # Not by np.testing: it is imported when it is first asked for, which no gate of ours guards.
    assert (out == 2 * x).all(), out


def end_of_child() -> int:
    """The exit status of a child that launches."""
    child = os.fork()
    if child == 0:
        signal.alarm(_LIMIT_S)
        launch(32)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Fork until the first launch is over, once at least."""
    thread = threading.Thread(target=launch, args=(16,))
    thread.start()
    statuses = [end_of_child()]
    while thread.is_alive():
        statuses.append(end_of_child())
    thread.join()
    print("statuses", *sorted(set(statuses)))


if __name__ == "__main__":
    main()
