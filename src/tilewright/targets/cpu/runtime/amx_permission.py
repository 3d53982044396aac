"""Linux's permission to use AMX's tile registers, asked for once a process.

Their 8 KiB are saved at a context switch only for processes that asked. Without permission the
first tile instruction ends the process with SIGILL. Threads that already run have it too, a
forked process inherits it, a new program asks again. It is refused where the processor has no
such registers, where a filter of system calls forbids it, and where a thread has a signal stack
that is too small for them.

Source: Linux, Documentation/arch/x86/xstate.rst.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

# By definition: the numbers of Linux on x86-64.
_ARCH_PRCTL = 158
_GET_SUPPORTED, _REQUEST = 0x1021, 0x1023
_TILE_DATA = 18


@functools.cache
def is_amx_permitted() -> bool:
    """Whether this process may use AMX: asked of the system at the first call."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):
        return False
    call.restype = ctypes.c_long
    supported = ctypes.c_uint64()
    arch_prctl = ctypes.c_long(_ARCH_PRCTL)
    if call(arch_prctl, ctypes.c_long(_GET_SUPPORTED), ctypes.byref(supported)) != 0:
        return False
    if not supported.value >> _TILE_DATA & 1:
        return False
    return call(arch_prctl, ctypes.c_long(_REQUEST), ctypes.c_ulong(_TILE_DATA)) == 0
