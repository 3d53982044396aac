"""The container tells a whole entry from anything else."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.runtime.container import (
    HEAD_BYTES,
    SCHEMA_VERSION,
    DamagedContainer,
    pack,
    section_names,
    unpack,
)

KEY = hashlib.sha256(b"key").digest()
SECTIONS = {"object": b"\x7fELF\x00\xff", "metadata": b"{}", "empty": b""}


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.binary()))
def test_unpack_returns_what_pack_took_in_order(sections: dict[str, bytes]) -> None:
    assert list(unpack(KEY, pack(KEY, sections)).items()) == list(sections.items())


@given(st.binary(max_size=300))
def test_random_bytes_are_damaged(data: bytes) -> None:
    with pytest.raises(DamagedContainer):
        unpack(KEY, data)


def test_every_truncation_is_damaged() -> None:
    data = pack(KEY, SECTIONS)
    for size in range(len(data)):
        with pytest.raises(DamagedContainer):
            unpack(KEY, data[:size])


def test_every_flipped_bit_is_damaged() -> None:
    data = pack(KEY, SECTIONS)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedContainer):
            unpack(KEY, bytes(flipped))


def test_trailing_bytes_are_damaged() -> None:
    with pytest.raises(DamagedContainer):
        unpack(KEY, pack(KEY, SECTIONS) + b"\x00")


def test_container_of_another_key_is_damaged() -> None:
    with pytest.raises(DamagedContainer):
        unpack(hashlib.sha256(b"other").digest(), pack(KEY, SECTIONS))


def _sealed(body: bytes) -> bytes:
    """A container with a right digest around any body, as an attacker would write it."""
    digest = hashlib.sha256(body).digest()
    head = struct.pack("<8sI32s32sQ", b"TWCACHE\n", SCHEMA_VERSION, KEY, digest, len(body))
    return head + body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xff\xff\xff",
        struct.pack("<I", 5000),
        struct.pack("<I", 2) + struct.pack("<HQ", 1, 0) + b"a",
        struct.pack("<IHQ", 1, 1, 1 << 63) + b"a",
        struct.pack("<IHQ", 1, 1, (1 << 64) - 1) + b"a",
        struct.pack("<IHQ", 1, 0xFFFF, 0) + b"a",
        struct.pack("<IHQ", 1, 1, 0) + b"\xff",
        struct.pack("<IHQ", 1, 1, 0) + b"atrailing",
        struct.pack("<IHQHQ", 2, 1, 0, 1, 0) + b"aa",
    ],
    ids=[
        "no count",
        "huge count",
        "count over the limit",
        "table cut",
        "huge section",
        "section of all ones",
        "name past the end",
        "name is no text",
        "unclaimed bytes",
        "name twice",
    ],
)
def test_hostile_table_with_a_right_digest_is_damaged(body: bytes) -> None:
    with pytest.raises(DamagedContainer):
        unpack(KEY, _sealed(body))


def test_section_names_need_only_the_first_bytes() -> None:
    data = pack(KEY, {"a": bytes(1000), "b": bytes(1000)})
    assert section_names(KEY, data[: HEAD_BYTES + 40], len(data)) == ("a", "b")


def test_pack_refuses_a_short_key() -> None:
    with pytest.raises(ValueError, match="key of 3 bytes"):
        pack(b"abc", {})


def test_pack_refuses_too_many_sections() -> None:
    with pytest.raises(ValueError, match="4097 sections"):
        pack(KEY, {str(i): b"" for i in range(4097)})
