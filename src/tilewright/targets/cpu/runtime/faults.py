"""Kernels as the handler of faults knows them: where their code lies, and their names.

See `fault_ir.py` for what it does with them. What it reads is never freed.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping

from tilewright.codegen.link import LoadedCode
from tilewright.codegen.object_file import code_range
from tilewright.runtime.artifact import Artifact
from tilewright.support.forking import ThreadLock
from tilewright.targets.cpu.runtime.fault_ir import (
    ACTION_BYTES,
    ENTRY_BYTES,
    ENTRY_FIELDS,
    FAULT_SIGNALS,
    HELP,
)
from tilewright.targets.cpu.runtime.pool import leak

# Source: Linux and its C libraries, struct sigaction on x86-64 and ARM: a pointer, 128 bytes of
# mask, flags.
_FLAGS_AT = 136
_SA_SIGINFO, _SA_ONSTACK = 0x4, 0x0800_0000
# By definition: SIG_DFL and SIG_IGN are 0 and 1.
_NUM_SPECIAL = 2
# Chosen, not measured: of a longer name or path the message shows a part.
_NAME_LENGTH, _PATH_BYTES, _CONSTANTS_LENGTH = 60, 400, 120
# By definition: room for what `shown_name` gives, four bytes a letter and ten digits a line.
NAME_BYTES = 8 * _NAME_LENGTH + _PATH_BYTES + 4 * _CONSTANTS_LENGTH + 64


class FaultReports:
    """The list of loaded kernels, and the handler, which is put up with the first of them."""

    def __init__(self, addresses: Mapping[str, int]) -> None:
        self._handler = addresses["on_fault"]
        self._head = ctypes.c_int64.from_address(addresses["fault_entries"])
        self._actions = addresses["fault_actions"]
        self._lock = ThreadLock()
        self._free: list[int] = []
        self._watched: dict[int, weakref.ref[LoadedCode]] = {}

    def note(self, artifact: Artifact, code: LoadedCode, symbol: str) -> None:
        """Have a fault in the code of a kernel name it, until the code is unloaded."""
        found = code_range(artifact.sections["object"], symbol)
        if found is None:
            return
        offset, num_bytes = found
        name = shown_name(artifact.metadata)
        with self._lock:
            if not self._head.value:
                self._watch()
            entry = self._free.pop() if self._free else self._new_entry()
        ctypes.memmove(entry + ENTRY_BYTES, name, len(name))
        _set(entry, "name_bytes", len(name))
        _set(entry, "help_bytes", 0 if _is_checked(artifact.metadata) else len(HELP))
        _set(entry, "start", code.addresses[symbol] - offset)
        _set(entry, "bytes", num_bytes)
        # Called while `code` goes, and before what it refers to: the code itself.
        self._watched[entry] = weakref.ref(code, lambda _: self._forget(entry))

    def _forget(self, entry: int) -> None:
        """Take no lock: this may come in the middle of anything."""
        _set(entry, "bytes", 0)
        del self._watched[entry]
        self._free.append(entry)

    def _new_entry(self) -> int:
        entry = leak(ctypes.create_string_buffer(ENTRY_BYTES + NAME_BYTES))
        _set(entry, "name", entry + ENTRY_BYTES)
        _set(entry, "next", self._head.value)
        self._head.value = entry
        return entry

    def _watch(self) -> None:
        for signal in FAULT_SIGNALS:
            watch_signal(signal, self._handler, self._actions + signal * ACTION_BYTES)


def watch_signal(signal: int, handler: int, action: int) -> None:
    """Put a handler before what is done about a signal, which is written to `action`.

    Mask and flags stay those of a handler that is there: it runs as it would without ours.
    """
    sigaction = ctypes.CDLL(None).sigaction
    sigaction.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    if sigaction(signal, None, action):
        return
    ours = ctypes.create_string_buffer(ctypes.string_at(action, ACTION_BYTES), ACTION_BYTES)
    at = ctypes.addressof(ours)
    flags = ctypes.c_int.from_address(at + _FLAGS_AT)
    address = ctypes.c_int64.from_address(at)
    is_special = 0 <= address.value < _NUM_SPECIAL
    # On the stack for signals, where the thread has one: its own may be full.
    flags.value |= _SA_SIGINFO | (_SA_ONSTACK if is_special else 0)
    address.value = handler
    sigaction(signal, at, None)


def shown_name(metadata: Mapping[str, object]) -> bytes:
    """What a message says of a kernel: its name, and a line with its place and constants."""
    name, defined = str(metadata["name"])[:_NAME_LENGTH], metadata.get("defined")
    if not isinstance(defined, list):
        return f"{name}\n".encode()
    path = str(defined[0]).encode(errors="replace")
    shown = path if len(path) <= _PATH_BYTES else b"..." + path[-_PATH_BYTES:]
    constants = str(metadata.get("constants", ""))
    cut = "..." if len(constants) > _CONSTANTS_LENGTH else ""
    with_them = f", with {constants[:_CONSTANTS_LENGTH]}{cut}" if constants else ""
    end = f":{defined[1]}, in {name}{with_them}\n".encode(errors="replace")
    return f"{name}\n  ".encode() + shown + end


def _is_checked(metadata: Mapping[str, object]) -> bool:
    options = metadata.get("options")
    return isinstance(options, dict) and bool(options.get("checked"))


def _set(entry: int, field: str, value: int) -> None:
    ctypes.c_int64.from_address(entry + ENTRY_FIELDS[field]).value = value
