"""Files by key below the cache directory, each complete or absent."""

from __future__ import annotations

import base64
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from .. import knobs


def base32(key: str) -> str:
    """A hexadecimal key as text that is shorter, for names of directories."""
    return base64.b32encode(bytes.fromhex(key)).decode("utf-8").rstrip("=")


class CacheManager(ABC):
    """A group of files under one key."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None:
        """The path of a file, or None."""

    @abstractmethod
    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str:
        """Write a file; its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of the files that were put as a group, by name, or None."""

    @abstractmethod
    def put_group(self, filename: str, group: Mapping[str, str]) -> str:
        """Make a group of files that were put; the path of its list."""


class FileCacheManager(CacheManager):
    """Files below the cache directory; each is complete or absent."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        root = knobs.cache.override_dir if override else knobs.cache.dump_dir if dump else None
        self.cache_dir = os.path.join(root or knobs.cache.dir, key)
        if not override:
            os.makedirs(self.cache_dir, exist_ok=True)

    def _make_path(self, filename: str) -> str:
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename: str) -> bool:
        """Whether there is such a file."""
        return os.path.exists(self._make_path(filename))

    def get_file(self, filename: str) -> str | None:
        """The path of a file, or None."""
        return self._make_path(filename) if self.has_file(filename) else None

    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str:
        """Write a file; its path."""
        content = data.encode() if isinstance(data, str) else data
        path = self._make_path(filename)
        # A reader finds the old file or the new one, never a part.
        unfinished = Path(f"{path}.{os.getpid()}.{threading.get_ident()}")
        unfinished.write_bytes(content)
        unfinished.replace(path)
        return path

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of the files that were put as a group, by name, or None."""
        path = self.get_file(f"__grp__{filename}")
        if path is None:
            return None
        listed = json.loads(Path(path).read_text(encoding="utf-8"))
        children = cast("dict[str, str]", listed.get("child_paths", {}))
        return {name: p for name, p in children.items() if os.path.exists(p)}

    def put_group(self, filename: str, group: Mapping[str, str]) -> str:
        """Make a group of files that were put; the path of its list."""
        return self.put(json.dumps({"child_paths": dict(group)}), f"__grp__{filename}", False)


def _manager() -> Callable[..., CacheManager]:
    """The class that the user chose for files under a key."""
    return cast("Callable[..., CacheManager]", knobs.cache.manager_class or FileCacheManager)


def get_cache_manager(key: str) -> CacheManager:
    """The files under a hexadecimal key."""
    return _manager()(base32(key))


def get_override_manager(key: str) -> CacheManager:
    """The files that stand in for compiled ones."""
    return _manager()(base32(key), override=True)


def get_dump_manager(key: str) -> CacheManager:
    """The files that a compilation dumped."""
    return _manager()(base32(key), dump=True)
