"""Fingerprints: what a cache key says about this compiler and this machine.

Both are computed in every fresh process before the first kernel is found in the cache, so
they look at the *status* of files where reading them would cost milliseconds.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec

_PACKAGE = __name__.partition(".")[0]
_INPUTS = ("llvmlite", "xdsl")
# The lines of /proc/cpuinfo that say what code the CPU runs: x86 names first, then ARM's.
_CPU_LINES = re.compile(
    rb"^(?:vendor_id|cpu family|model|model name|flags"
    rb"|CPU implementer|CPU architecture|CPU variant|CPU part|Features|isa)\s*:.*$",
    re.MULTILINE,
)
_CPUINFO_BYTES = 16 << 10
_LOADED_NS = time.time_ns()


def digest(*parts: str | bytes) -> str:
    """The SHA-256 of `parts` in hex, a cache key; differently cut parts differ.

    *Example*

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    total = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


@functools.cache
def compiler_fingerprint() -> str:
    """The identity of this version of the compiler, its LLVM and its Python, in hex.

    It covers the path, size and modification time of every source file of the package, and
    the installed versions of llvmlite and xDSL. A tree without files (an imported archive) has
    a fingerprint of its own in every process, so that it never finds a stale kernel; and so has
    one with a file that was written since this process began, of which it may run the old text.
    """
    python = f"{sys.implementation.cache_tag} {sys.platform}"
    stamps = [stamp for name in _INPUTS for stamp in distribution_stamps(name)]
    sources = source_stamps(_package_directory(_PACKAGE))
    if is_written_after(sources, _LOADED_NS):
        sources.append(os.urandom(16).hex())
    return digest(python, *stamps, "sources", *sources)


def is_written_after(stamps: list[str], start_ns: int) -> bool:
    """Whether one of `source_stamps` is of a file written between a time and now.

    A time that is still to come is no change but another clock's.
    """
    times = (stamp.rpartition(" ")[2] for stamp in stamps)
    return any(start_ns < int(time_ns) <= time.time_ns() for time_ns in times if time_ns.isdigit())


@functools.cache
def extension_fingerprint(name: str) -> str:
    """The identity of a package that adds ops and rules, in hex: its source files' stamps."""
    return digest(name, *_stamps_of(name))


@functools.cache
def host_cpu_fingerprint() -> str:
    """The identity of this kind of CPU, in hex: its model and the features it has.

    A home directory that several machines share holds entries of each kind.
    """
    return digest(platform.machine(), *cpu_description())


def source_stamps(directory: str) -> list[str]:
    """The relative path, size and modification time of each `.py` file below `directory`."""
    stamps = sorted(_walk(directory, "")) if directory else []
    # The version is here: trees that are copied with fixed times still tell releases apart.
    version = _read(os.path.join(directory, "__init__.py"), 1 << 16).hex()
    return [*stamps, version] if stamps else [os.urandom(16).hex()]


def _stamps_of(name: str) -> list[str]:
    """The stamps of a package, or of a module that is one file."""
    directory = _package_directory(name)
    if directory:
        return source_stamps(directory)
    try:
        spec = find_spec(name)
        status = os.stat(spec.origin or "") if spec is not None else None
    except (ImportError, ValueError, OSError):
        status = None
    if status is None:
        return source_stamps("")
    return [f"{status.st_size} {status.st_mtime_ns}"]


def distribution_stamps(name: str) -> list[str]:
    """What identifies the installed version of the package `name`, without importing it.

    That is the name of its `dist-info` folder (`importlib.metadata` costs ten times as much),
    or, for a package that is not installed but on the path, its source files.
    """
    directory = _package_directory(name)
    if not directory:
        return [f"{name} is missing"]
    prefix = f"{name}-".lower()
    found = [
        entry
        for entry in _listed(os.path.dirname(directory))
        if entry.endswith((".dist-info", ".egg-info")) and entry.lower().startswith(prefix)
    ]
    return sorted(found) or source_stamps(directory)


def installed_version(name: str) -> str | None:
    """The installed version of the package `name`, by the name of its folder; None without one."""
    for stamp in distribution_stamps(name):
        stem, _, suffix = stamp.rpartition(".")
        if suffix in ("dist-info", "egg-info"):
            return stem[len(name) + 1 :].partition("-")[0]
    return None


def cpu_description() -> list[bytes]:
    """The lines that describe the first CPU, from the kernel or else from `platform`."""
    # Not the whole file: the kernel writes it while it is read, milliseconds on 128 CPUs.
    first, _, _ = _read("/proc/cpuinfo", _CPUINFO_BYTES).partition(b"\n\n")
    return _CPU_LINES.findall(first) or [platform.processor().encode()]


def _package_directory(name: str) -> str:
    try:
        spec: importlib.machinery.ModuleSpec | None = find_spec(name)
    except (ImportError, ValueError):
        return ""
    folders = None if spec is None else spec.submodule_search_locations
    return next(iter(folders), "") if folders else ""


def _walk(directory: str, relative: str) -> Iterator[str]:
    try:
        with os.scandir(os.path.join(directory, relative)) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        path = f"{relative}{entry.name}"
        if entry.name.endswith(".py"):
            with suppress(OSError):  # an editor's lock is a link to nowhere
                status = entry.stat()
                yield f"{path} {status.st_size} {status.st_mtime_ns}"
        elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
            yield from _walk(directory, f"{path}/")


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory or ".")
    except OSError:
        return []


def _read(path: str, limit_bytes: int) -> bytes:
    """The first bytes of the file, in one system call; none where there is no file."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(limit_bytes) or b""
    except OSError:
        return b""


def usable_cpu_count() -> int:
    """The CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
