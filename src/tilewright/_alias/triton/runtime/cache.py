"""`triton.runtime.cache`: a directory of files by key, for clients that keep their own there.

Compiled kernels are not in it: they are in the cache of Tilewright (`tilewright cache`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.runtime.fingerprint import digest

from .. import knobs
from .._names import refuse
from ..backends.compiler import BaseBackend
from ..compiler.compiler import triton_key
from ..compiler.source import ASTSource
from .cache_files import (
    CacheManager,
    FileCacheManager,
    base32,
    get_cache_manager,
    get_dump_manager,
    get_override_manager,
)
from .remote_cache import RedisRemoteCacheBackend, RemoteCacheBackend, RemoteCacheManager

_base32 = base32  # packages import it by this name


def get_cache_key(
    src: ASTSource,
    backend: BaseBackend,
    backend_options: object,
    env_vars: Mapping[str, str],
) -> str:
    """The key of a kernel that is compiled with these options."""
    options = repr(sorted(vars(backend_options).items(), key=lambda item: item[0]))
    return digest(triton_key(), src.hash(), backend.hash(), options, repr(sorted(env_vars.items())))


__getattr__ = refuse(__name__, {})

__all__ = [
    "CacheManager",
    "FileCacheManager",
    "RedisRemoteCacheBackend",
    "RemoteCacheBackend",
    "RemoteCacheManager",
    "get_cache_key",
    "get_cache_manager",
    "get_dump_manager",
    "get_override_manager",
    "knobs",
    "triton_key",
]
