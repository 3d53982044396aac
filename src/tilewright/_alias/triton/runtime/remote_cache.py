"""Files under a key that are shared with other machines through a server."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from tilewright.support.errors import UnsupportedError

from .. import knobs
from .cache_files import CacheManager, FileCacheManager


class RemoteCacheBackend(ABC):
    """A server that keeps bytes by key and file name."""

    def __init__(self, key: str) -> None:
        self.key = key

    @abstractmethod
    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The contents of those of the files that the server has."""

    @abstractmethod
    def put(self, filename: str, data: bytes) -> None:
        """Keep a file."""


class _Redis(Protocol):
    def mget(self, keys: Sequence[str]) -> Sequence[bytes | None]: ...
    def set(self, key: str, data: bytes) -> object: ...


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """A Redis server, at the address that `knobs.redis` names."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        try:
            module = import_module("redis")
        except ImportError:
            raise UnsupportedError(
                "a cache on a Redis server needs the package redis", hint="pip install redis"
            ) from None
        connect = cast("Callable[..., _Redis]", module.__dict__["Redis"])
        self._redis = connect(host=knobs.redis.host, port=knobs.redis.port)
        self._format = knobs.redis.key_format

    def _key(self, filename: str) -> str:
        return self._format.format(key=self.key, filename=filename)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The contents of those of the files that the server has."""
        found = self._redis.mget([self._key(name) for name in filenames])
        return {n: data for n, data in zip(filenames, found, strict=True) if data is not None}

    def put(self, filename: str, data: bytes) -> None:
        """Keep a file."""
        self._redis.set(self._key(filename), data)


class RemoteCacheManager(CacheManager):
    """Files on a server, of the class `knobs.cache.remote_manager_class`, with copies here.

    Chosen with `TRITON_CACHE_MANAGER=triton.runtime.cache:RemoteCacheManager`.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        backend = knobs.cache.remote_manager_class
        if backend is None:
            raise UnsupportedError(
                "RemoteCacheManager: no server is named",
                hint="set TRITON_REMOTE_CACHE_BACKEND to `module:Class`, such as "
                "triton.runtime.cache:RedisRemoteCacheBackend",
            )
        self._backend = cast("Callable[[str], RemoteCacheBackend]", backend)(key)
        self._files = FileCacheManager(key, override, dump)
        self._override = override
        self._dump = dump

    def _keep(self, filename: str, data: bytes) -> str:
        return self._files.put(data, filename)

    def get_file(self, filename: str) -> str | None:
        """The path of a copy of a file, or None."""
        if self._override or self._dump:
            return self._files.get_file(filename)
        found = self._backend.get([filename])
        return self._keep(filename, found[filename]) if filename in found else None

    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str:
        """Write a file, here and on the server; the path of the copy."""
        content = data.encode() if isinstance(data, str) else data
        if not self._override and not self._dump:
            self._backend.put(filename, content)
        return self._keep(filename, content)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of copies of the files that were put as a group, by name, or None."""
        listed = self.get_file(f"__grp__{filename}")
        if listed is None:
            return None
        names = cast("list[str]", json.loads(Path(listed).read_text(encoding="utf-8")))
        if self._override or self._dump:
            paths = {name: self._files.get_file(name) for name in names}
            return {name: path for name, path in paths.items() if path is not None}
        return {name: self._keep(name, data) for name, data in self._backend.get(names).items()}

    def put_group(self, filename: str, group: Mapping[str, str]) -> str:
        """Make a group of files that were put; the path of its list.

        The list has names only: paths of one machine mean nothing on another.
        """
        names = sorted(os.path.basename(name) for name in group)
        return self.put(json.dumps(names), f"__grp__{filename}")
