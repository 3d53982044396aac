"""Arrays that end where memory does: one byte read beyond them ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def before_a_hole(values: np.ndarray) -> np.ndarray:
    """A copy of `values` in C order whose last byte is the last before a page without access."""
    size = values.nbytes
    room = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, room + mmap.PAGESIZE)
    memory = np.frombuffer(pages, np.uint8)
    if _LIBC.mprotect(memory.ctypes.data + room, mmap.PAGESIZE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    copy = memory[room - size : room].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy
