"""Object code into this process: one LLVM linker, symbols of the process's libraries."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import sys

import llvmlite.binding as llvm

from tilewright.codegen.optimize import create_target_machine
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.support.forking import ThreadLock

# Wide-integer division is a call into libgcc, the rare functions are calls into libm; Python
# may have loaded either privately, and only global symbols resolve.
_LINUX_LIBRARIES = ("libm.so.6", "libgcc_s.so.1")


@dataclass(frozen=True)
class LoadedCode:
    """Linked code: addresses by symbol, valid while this object is referenced."""

    addresses: dict[str, int]
    keepalive: llvm.ResourceTracker

    @property
    def address(self) -> int:
        """The address of the only symbol."""
        (address,) = self.addresses.values()
        return address

    def keep_forever(self) -> None:
        """Never unload this code, not even at interpreter exit (a thread may be inside)."""
        self.keepalive.detach()


class Linker:
    """The LLVM linker of this process."""

    def __init__(self) -> None:
        _load_libraries()
        self._machine = create_target_machine(llvm.get_host_cpu_name(), ())
        # JITLink puts the sections of an object side by side. LLVM's older linker maps each kind
        # by itself, now and then more than 2 GB from the code that refers to it with 32 bits, and
        # then ends the process (55 of 44,410 random programs on a machine with 512 GB).
        # LLVM would print its errors; the exception below is enough (a damaged cache entry
        # is not the user's business).
        self._engine = llvm.create_lljit_compiler(
            self._machine, use_jit_link=True, suppress_errors=True
        )
        self._numbers = itertools.count()

    def load(self, object_bytes: bytes, symbols: tuple[str, ...]) -> LoadedCode:
        """Link an object file and look `symbols` up.

        Raises: InternalError when the object is damaged or a symbol cannot be resolved.
        """
        # A library name is used up for good, even after the code has been unloaded.
        name = f"tilewright-{next(self._numbers)}"
        builder = llvm.JITLibraryBuilder().add_object_img(object_bytes).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        try:
            tracker = builder.link(self._engine, name)
        except RuntimeError as error:
            raise InternalError(f"cannot link {', '.join(symbols)}: {error}") from error
        return LoadedCode({symbol: tracker[symbol] for symbol in symbols}, tracker)


def load_object(object_bytes: bytes, *symbols: str) -> LoadedCode:
    """Link `object_bytes` into this process and return the addresses of `symbols`."""
    with _creation_lock:
        linker = _linker()
    return linker.load(object_bytes, symbols)


_creation_lock = ThreadLock()


@functools.cache
def _linker() -> Linker:
    return Linker()


def _load_libraries() -> None:
    if sys.platform != "linux":
        return
    for library in _LINUX_LIBRARIES:
        # A system without the library (musl has one libc) holds the symbols elsewhere.
        with contextlib.suppress(OSError):
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
