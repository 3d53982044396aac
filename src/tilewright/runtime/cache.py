"""The disk cache: what was compiled and tuned once is found again by the next process.

One file holds one entry, so an entry is there as a whole or not at all. Readers and writers
hold no lock: a writer publishes by renaming a finished file over the name, a reader that has
opened a file keeps it whatever happens to the name. What does not prove itself whole
(`container.py`) is a miss and is removed; where the directory cannot be used
(`directory.py`, a full disk, any `OSError`) the entry is kept in memory and one warning says so.
No failure of the disk becomes an exception of the cache.

The least recently used entries go first when the directory grows over its limit. The last use
is the file's modification time, set again by a hit after some minutes.
"""

from __future__ import annotations

import functools
import json
import re
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from tilewright.runtime.container import DamagedContainer, pack, section_names, unpack
from tilewright.runtime.directory import FileStatus, PrivateDirectory, UntrustedFile
from tilewright.support.dataclass import dataclass
from tilewright.support.options import runtime_options

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

DEFAULT_LIMIT_BYTES = 2 << 30
# A larger file is not read into memory; no kernel comes near.
MAX_ENTRY_BYTES = 256 << 20
_SUFFIX = ".tile"
_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SECOND_NS = 1_000_000_000
_TOUCH_NS = 300 * _SECOND_NS
_IN_USE_NS = 3600 * _SECOND_NS
_TABLE_BYTES = 64 << 10
_JSON_SECTION = "json"


class CacheWarning(UserWarning):
    """The kernel cache on disk cannot be used; entries are kept in memory."""


@dataclass(frozen=True)
class CacheEntry:
    """One entry as `DiskCache.entries` lists it; `sections` is empty where it is damaged."""

    key: str
    size_bytes: int
    last_use_ns: int
    sections: tuple[str, ...]


class DiskCache:
    """Named byte sections by key, on disk where that works and in memory where it does not.

    `directory` None keeps everything in memory, without a warning. A key is a SHA-256 in
    lower-case hex. Safe to share between threads, forks and processes that may be killed.

    *Undefined*: when two processes put different sections under one key, which one stays.
    """

    def __init__(self, directory: Path | None, size_limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.directory = directory
        self.size_limit_bytes = size_limit_bytes
        self._files = None if directory is None else PrivateDirectory(directory)
        self._memory: dict[str, _Held] = {}
        self._has_warned = False
        # The first put looks at the size of what earlier processes left.
        self._unswept_bytes = size_limit_bytes

    def get(self, key: str) -> dict[str, bytes] | None:
        """The sections under `key`, or None. Raises: `ValueError` for what is no key."""
        raw_key = _raw_key(key)
        if (held := self._memory.get(key)) is not None:
            return dict(held.sections)
        return None if self._files is None else self._get_file(self._files, key, raw_key)

    def put(self, key: str, sections: Mapping[str, bytes]) -> None:
        """Keep `sections` under `key`, replacing what was there.

        Raises: `ValueError` for what is no key or for sections that no container can hold.
        """
        held = _Held(time.time_ns(), {name: bytes(data) for name, data in sections.items()})
        data = pack(_raw_key(key), held.sections)
        if self._files is not None and self._put_file(self._files, key, data):
            self._memory.pop(key, None)
            return
        self._memory[key] = held
        self._evict_from_memory()

    def get_json(self, key: str) -> JsonValue:
        """The value that `put_json` kept under `key`, or None. Raises: `ValueError` for no key."""
        sections = self.get(key) or {}
        try:
            return json.loads(sections.get(_JSON_SECTION, b"null"))
        except (ValueError, RecursionError):
            return None

    def put_json(self, key: str, value: JsonValue) -> None:
        """Keep `value` under `key`. Raises: `ValueError` for what is no key."""
        self.put(key, {_JSON_SECTION: json.dumps(value, sort_keys=True).encode()})

    def entries(self) -> list[CacheEntry]:
        """Every entry, least recently used first; then those that are held in memory."""
        listed = [
            CacheEntry(file.name.removesuffix(_SUFFIX), file.size_bytes, file.last_use_ns, names)
            for file in self._entry_files()
            if (names := self._section_names(file)) is not None
        ]
        for key, held in list(self._memory.items()):
            listed.append(CacheEntry(key, held.size_bytes, held.put_ns, tuple(held.sections)))
        return listed

    def verify(self) -> list[str]:
        """The keys of the entries on disk that are damaged; none is removed."""
        return [
            file.name.removesuffix(_SUFFIX)
            for file in self._entry_files()
            if self._is_damaged(file)
        ]

    def clear(self) -> int:
        """Remove every entry, and count them. Files that are no entries stay."""
        num_removed = len(self._memory)
        self._memory.clear()
        if self._files is not None:
            for file in self._entry_files():
                num_removed += self._try_remove(self._files, file.name)
            with suppress(OSError):
                _remove_dead_writers(self._files)
        return num_removed

    def _get_file(
        self, files: PrivateDirectory, key: str, raw_key: bytes
    ) -> dict[str, bytes] | None:
        name = key + _SUFFIX
        try:
            data, status = files.read(name, MAX_ENTRY_BYTES)
            sections = unpack(raw_key, data)
        except FileNotFoundError:
            return None
        except (DamagedContainer, UntrustedFile):
            self._try_remove(files, name)
            return None
        except OSError as error:
            self._warn_once(error)
            return None
        # A time in the future (a clock that was set back) is corrected too.
        if abs(time.time_ns() - status.last_use_ns) >= _TOUCH_NS:
            with suppress(OSError):
                files.touch(name)
        return sections

    def _put_file(self, files: PrivateDirectory, key: str, data: bytes) -> bool:
        if len(data) > min(self.size_limit_bytes, MAX_ENTRY_BYTES):
            return False
        try:
            try:
                files.publish(key + _SUFFIX, data)
            except FileNotFoundError:
                # Somebody removed the directory while we wrote into it.
                files.publish(key + _SUFFIX, data)
        except OSError as error:
            self._warn_once(error)
            return False
        with suppress(OSError):
            self._sweep_when_due(files, len(data))
        return True

    def _sweep_when_due(self, files: PrivateDirectory, written_bytes: int) -> None:
        self._unswept_bytes += written_bytes
        if self._unswept_bytes <= self.size_limit_bytes // 16:
            return
        self._unswept_bytes = 0
        _remove_dead_writers(files)
        entries = self._entry_files()
        for name in evicted_names(entries, self.size_limit_bytes, time.time_ns()):
            files.remove(name)

    def _entry_files(self) -> list[FileStatus]:
        if self._files is None:
            return []
        try:
            found = self._files.files()
        except OSError as error:
            self._warn_once(error)
            return []
        return [file for file in found if _is_entry_name(file.name)]

    def _section_names(self, file: FileStatus) -> tuple[str, ...] | None:
        """The names of the sections, none where the file is damaged, None where it is gone."""
        assert self._files is not None
        try:
            prefix, status = self._files.read(file.name, _TABLE_BYTES)
            raw_key = bytes.fromhex(file.name.removesuffix(_SUFFIX))
            return section_names(raw_key, prefix, status.size_bytes)
        except FileNotFoundError:
            return None
        except (DamagedContainer, OSError):
            return ()

    def _is_damaged(self, file: FileStatus) -> bool:
        assert self._files is not None
        try:
            data, _ = self._files.read(file.name, MAX_ENTRY_BYTES)
            unpack(bytes.fromhex(file.name.removesuffix(_SUFFIX)), data)
        except FileNotFoundError:
            return False
        except (DamagedContainer, OSError):
            return True
        return False

    def _try_remove(self, files: PrivateDirectory, name: str) -> bool:
        try:
            files.remove(name)
        except OSError:
            return False
        return True

    def _evict_from_memory(self) -> None:
        total_bytes = sum(held.size_bytes for held in list(self._memory.values()))
        for key in list(self._memory)[:-1]:
            if total_bytes <= self.size_limit_bytes:
                return
            # Another thread may have been faster.
            total_bytes -= self._memory.pop(key, _GONE).size_bytes

    def _warn_once(self, error: OSError) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        warnings.warn(
            f"the kernel cache {self.directory} cannot be used ({error.strerror or error}); "
            "what this process compiles is kept in memory only",
            CacheWarning,
            stacklevel=2,
        )


@dataclass(frozen=True)
class _Held:
    """An entry in memory."""

    put_ns: int
    sections: dict[str, bytes]

    @property
    def size_bytes(self) -> int:
        return sum(len(data) for data in self.sections.values())


_GONE = _Held(0, {})


def evicted_names(files: list[FileStatus], limit_bytes: int, now_ns: int) -> list[str]:
    """The files to remove so that the rest fits, from `files` in the order of last use.

    A file of the last hour may be in use, or about to be, and stays; unless all files
    together exceed twice the limit.
    """
    total_bytes = sum(file.size_bytes for file in files)
    is_flooded = total_bytes > 2 * limit_bytes
    names: list[str] = []
    for file in files:
        if total_bytes <= limit_bytes:
            break
        if is_flooded or not _is_in_use(file, now_ns):
            names.append(file.name)
            total_bytes -= file.size_bytes
    return names


def open_default() -> DiskCache:
    """The cache of this process, as the environment names it now.

    Raises: `InvalidVariable` for a malformed environment variable.
    """
    options = runtime_options()
    return _open(options.cache_dir, options.cache_size_bytes)


@functools.cache
def _open(directory: Path | None, size_limit_bytes: int) -> DiskCache:
    return DiskCache(directory, size_limit_bytes)


def _remove_dead_writers(files: PrivateDirectory) -> None:
    """Remove the unfinished files whose writer must be dead."""
    for file in files.unfinished():
        if not _is_in_use(file, time.time_ns()):
            files.remove(file.name)


def _is_in_use(file: FileStatus, now_ns: int) -> bool:
    """Whether the last hour used the file; by a clock that may be ahead (a file server's)."""
    return abs(now_ns - file.last_use_ns) < _IN_USE_NS


def _is_entry_name(name: str) -> bool:
    return name.endswith(_SUFFIX) and _KEY.fullmatch(name.removesuffix(_SUFFIX)) is not None


def _raw_key(key: str) -> bytes:
    if _KEY.fullmatch(key) is None:
        raise ValueError(f"a cache key is a SHA-256 in lower-case hex, not {key[:80]!r}")
    return bytes.fromhex(key)
