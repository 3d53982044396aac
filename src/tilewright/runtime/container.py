"""The container: named byte sections in one file that proves itself whole.

```
magic     8 bytes   TWCACHE, newline
schema    u32       version of this layout
key      32 bytes   the key that the file answers
digest   32 bytes   SHA-256 of the body
size      u64       bytes of the body
body                count u32, then per section name length u16 and data length u64,
                    then the names, then the data
```

Integers are little-endian. Every byte is either compared or covered by the digest, so a file
that was cut, flipped or written by somebody else is told apart from a whole one. The digest
says nothing about *who* wrote the file: that is the directory's part (`directory.py`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping

SCHEMA_VERSION = 1
_MAGIC = b"TWCACHE\n"
_HEAD = struct.Struct("<8sI32s32sQ")
_COUNT = struct.Struct("<I")
_ROW = struct.Struct("<HQ")
_MAX_SECTIONS = 4096
HEAD_BYTES = _HEAD.size


class DamagedContainer(ValueError):
    """The bytes are not a whole container for the key."""


def pack(key: bytes, sections: Mapping[str, bytes]) -> bytes:
    """The container of `sections` under the 32-byte `key`; the order of sections is kept.

    Raises: `ValueError` for a key of another length, more than 4096 sections, or a name
    longer than 65535 bytes.
    """
    names = [name.encode() for name in sections]
    if len(key) != 32 or len(names) > _MAX_SECTIONS or any(len(n) > 0xFFFF for n in names):
        raise ValueError(f"cannot pack {len(names)} sections under a key of {len(key)} bytes")
    rows = (
        _ROW.pack(len(name), len(data)) for name, data in zip(names, sections.values(), strict=True)
    )
    body = b"".join([_COUNT.pack(len(names)), *rows, *names, *sections.values()])
    head = _HEAD.pack(_MAGIC, SCHEMA_VERSION, key, hashlib.sha256(body).digest(), len(body))
    return head + body


def unpack(key: bytes, data: bytes) -> dict[str, bytes]:
    """The sections of the container `data`, every byte of which has been checked.

    Raises: `DamagedContainer` unless `data` is exactly what `pack(key, …)` wrote.
    """
    digest = _check_head(key, data, len(data))
    body = memoryview(data)[HEAD_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise DamagedContainer("the digest differs")
    rows, offset = _read_table(body)
    sections: dict[str, bytes] = {}
    for name, size_bytes in rows:
        sections[name] = bytes(body[offset : offset + size_bytes])
        offset += size_bytes
    if offset != len(body) or len(sections) != len(rows):
        raise DamagedContainer("the sections do not fill the body")
    return sections


def section_names(key: bytes, prefix: bytes, size_bytes: int) -> tuple[str, ...]:
    """The names in a container of `size_bytes`, from its first bytes; the data is unchecked.

    Raises: `DamagedContainer` where the head or the table of sections is wrong.
    """
    _check_head(key, prefix, size_bytes)
    rows, _ = _read_table(memoryview(prefix)[HEAD_BYTES:])
    return tuple(name for name, _ in rows)


def _check_head(key: bytes, data: bytes, size_bytes: int) -> bytes:
    """The digest that the head of `data` names, after comparing all other fields."""
    if len(data) < HEAD_BYTES:
        raise DamagedContainer("shorter than a head")
    magic, schema, stored_key, digest, body_bytes = _HEAD.unpack_from(data)
    if (magic, schema, stored_key) != (_MAGIC, SCHEMA_VERSION, key):
        raise DamagedContainer("another format, version or key")
    if body_bytes != size_bytes - HEAD_BYTES:
        raise DamagedContainer("the size differs")
    return digest


def _read_table(body: memoryview) -> tuple[list[tuple[str, int]], int]:
    """The (name, data bytes) of each section and the offset of the first data byte."""
    try:
        (count,) = _COUNT.unpack_from(body)
        if count > _MAX_SECTIONS:
            raise DamagedContainer(f"{count} sections")
        sizes = [_ROW.unpack_from(body, _COUNT.size + i * _ROW.size) for i in range(count)]
        offset = _COUNT.size + count * _ROW.size
        rows: list[tuple[str, int]] = []
        for name_bytes, data_bytes in sizes:
            name = bytes(body[offset : offset + name_bytes])
            offset += name_bytes
            rows.append((name.decode(), data_bytes))
    except (struct.error, UnicodeDecodeError):
        raise DamagedContainer("the table of sections is damaged") from None
    if offset > len(body):
        raise DamagedContainer("the table of sections is cut")
    return rows, offset
