"""The disk cache keeps entries, drops the least recently used, and trusts no other user."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.runtime import cache as cache_module
from tilewright.runtime import directory as directory_module
from tilewright.runtime.cache import CacheWarning, DiskCache, evicted_names, open_default
from tilewright.runtime.directory import FileStatus
from tilewright.runtime.fingerprint import digest

HOUR_NS = 3600 * 10**9
KEY = digest("key")
SECTIONS = {"object": b"\x7fELF" * 10, "metadata": b"{}"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _file(root: Path, key: str = KEY) -> Path:
    return root / f"{key}.tile"


def _age(root: Path, key: str, hours: float) -> None:
    then = time.time_ns() - int(hours * HOUR_NS)
    os.utime(_file(root, key), ns=(then, then))


def test_another_cache_on_the_directory_finds_the_entry(root: Path) -> None:
    DiskCache(root).put(KEY, SECTIONS)
    assert DiskCache(root).get(KEY) == SECTIONS
    assert DiskCache(root).get(digest("other")) is None


def test_put_replaces_the_entry(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    cache.put(KEY, {"new": b"1"})
    assert cache.get(KEY) == {"new": b"1"}


def test_entry_without_sections_is_no_miss(root: Path) -> None:
    DiskCache(root).put(KEY, {})
    assert DiskCache(root).get(KEY) == {}


def test_missing_directory_is_a_miss_and_is_not_made_by_reading(root: Path) -> None:
    assert DiskCache(root).get(KEY) is None
    assert DiskCache(root).entries() == []
    assert not root.exists()


def test_directory_and_missing_parents_are_closed_to_others(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        DiskCache(tmp_path / "a" / "b").put(KEY, SECTIONS)
    finally:
        os.umask(old)
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(_file(tmp_path / "a" / "b").stat().st_mode) == 0o600


def test_no_temporary_file_stays(root: Path) -> None:
    DiskCache(root).put(KEY, SECTIONS)
    assert os.listdir(root) == [f"{KEY}.tile"]


@pytest.mark.parametrize(
    "key", ["", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n", "/" + "a" * 63, "é" * 64]
)
def test_key_that_is_no_digest_is_refused(root: Path, key: str) -> None:
    cache = DiskCache(root)
    with pytest.raises(ValueError, match="cache key"):
        cache.get(key)
    with pytest.raises(ValueError, match="cache key"):
        cache.put(key, SECTIONS)
    assert not root.exists()


def test_every_truncation_of_an_entry_is_a_miss(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, {"a": b"1234567"})
    whole = _file(root).read_bytes()
    for size in range(len(whole)):
        _file(root).write_bytes(whole[:size])
        assert cache.get(KEY) is None
        assert not _file(root).exists()


def test_every_flipped_byte_of_an_entry_is_a_miss(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, {"a": b"1234567"})
    whole = _file(root).read_bytes()
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 0xFF
        _file(root).write_bytes(flipped)
        assert cache.get(KEY) is None
    cache.put(KEY, {"a": b"again"})
    assert cache.get(KEY) == {"a": b"again"}


def test_huge_sparse_file_is_a_miss_without_reading_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MAX_ENTRY_BYTES", 4096)
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    os.truncate(_file(root), 1 << 40)
    assert cache.get(KEY) is None
    assert not _file(root).exists()


def test_symbolic_link_in_place_of_an_entry_is_not_followed(root: Path, tmp_path: Path) -> None:
    other = DiskCache(tmp_path / "other")
    other.put(KEY, SECTIONS)
    root.mkdir(mode=0o700)
    _file(root).symlink_to(_file(tmp_path / "other"))
    assert DiskCache(root).get(KEY) is None
    assert not _file(root).is_symlink()
    assert other.get(KEY) == SECTIONS


def test_fifo_in_place_of_an_entry_does_not_block(root: Path) -> None:
    root.mkdir(mode=0o700)
    os.mkfifo(_file(root), 0o600)
    assert DiskCache(root).get(KEY) is None
    assert not _file(root).exists()


def test_directory_in_place_of_an_entry_is_removed(root: Path) -> None:
    root.mkdir(mode=0o700)
    _file(root).mkdir()
    cache = DiskCache(root)
    assert cache.get(KEY) is None
    cache.put(KEY, SECTIONS)
    assert DiskCache(root).get(KEY) == SECTIONS


def test_entry_that_others_may_write_is_a_miss(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    _file(root).chmod(0o666)
    assert cache.get(KEY) is None


def test_entry_of_another_key_under_this_name_is_a_miss(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    os.rename(_file(root), _file(root, digest("other")))
    assert cache.get(digest("other")) is None


def _degrades_to_memory(root: Path) -> str:
    """The one warning of a cache on `root`, after checking that entries are kept."""
    cache = DiskCache(root)
    with pytest.warns(CacheWarning) as caught:
        assert cache.get(KEY) is None
        cache.put(KEY, SECTIONS)
        cache.put(digest("second"), {})
        assert cache.get(KEY) == SECTIONS
    assert len(caught) == 1
    assert [entry.key for entry in cache.entries()] == [KEY, digest("second")]
    return str(caught[0].message)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_directory_that_others_may_write_is_not_used(root: Path, mode: int) -> None:
    root.mkdir()
    root.chmod(mode)
    message = _degrades_to_memory(root)
    assert str(root) in message and "chmod 700" in message
    assert os.listdir(root) == []


def test_linked_directory_is_not_used(root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    root.symlink_to(tmp_path / "real")
    _degrades_to_memory(root)
    assert os.listdir(tmp_path / "real") == []


def test_directory_of_another_user_is_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir(mode=0o700)
    monkeypatch.setattr(directory_module.os, "geteuid", lambda: os.getuid() + 1)
    assert "another user" in _degrades_to_memory(root)
    assert os.listdir(root) == []


def test_file_in_place_of_the_directory_degrades_to_memory(root: Path) -> None:
    root.write_bytes(b"")
    _degrades_to_memory(root)
    assert root.read_bytes() == b""


def test_directory_that_is_repaired_is_used_again(root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)
    cache = DiskCache(root)
    with pytest.warns(CacheWarning):
        cache.put(KEY, SECTIONS)
    root.chmod(0o700)
    cache.put(KEY, SECTIONS)
    assert DiskCache(root).get(KEY) == SECTIONS


def test_cache_without_directory_keeps_entries_silently() -> None:
    cache = DiskCache(None)
    cache.put(KEY, SECTIONS)
    assert cache.get(KEY) == SECTIONS
    assert cache.verify() == []
    assert cache.clear() == 1
    assert cache.get(KEY) is None


def test_memory_drops_the_oldest_over_the_limit() -> None:
    cache = DiskCache(None, size_limit_bytes=250)
    for name in "abc":
        cache.put(digest(name), {"data": bytes(100)})
    assert cache.get(digest("a")) is None
    assert cache.get(digest("b")) is not None and cache.get(digest("c")) is not None


def test_entry_over_the_limit_stays_in_memory(root: Path) -> None:
    cache = DiskCache(root, size_limit_bytes=100)
    cache.put(KEY, {"data": bytes(200)})
    assert cache.get(KEY) == {"data": bytes(200)}
    assert not root.exists()


def test_changing_what_get_returned_changes_no_entry() -> None:
    cache = DiskCache(None)
    cache.put(KEY, SECTIONS)
    first = cache.get(KEY)
    assert first is not None
    first.clear()
    assert cache.get(KEY) == SECTIONS


def test_eviction_removes_the_least_recently_used(root: Path) -> None:
    cache = DiskCache(root, size_limit_bytes=3500)
    for age, name in enumerate("abc"):
        cache.put(digest(name), {"data": bytes(1000)})
        _age(root, digest(name), hours=9 - age)
    assert cache.get(digest("a")) is not None
    cache.put(digest("d"), {"data": bytes(1000)})
    alive = {name for name in "abcd" if _file(root, digest(name)).exists()}
    assert alive == {"a", "c", "d"}


def test_first_put_of_a_process_trims_what_others_left(root: Path) -> None:
    for name in "abcdefgh":
        DiskCache(root).put(digest(name), {"data": bytes(1000)})
        _age(root, digest(name), hours=2)
    DiskCache(root, size_limit_bytes=4000).put(digest("new"), {"data": bytes(1000)})
    assert len(os.listdir(root)) == 3


def _statuses(*hours: float) -> list[FileStatus]:
    return [FileStatus(str(i), 100, int(-h * HOUR_NS)) for i, h in enumerate(hours)]


def test_files_of_the_last_hour_are_not_evicted() -> None:
    assert evicted_names(_statuses(3, 0.9, 0.5), limit_bytes=150, now_ns=0) == ["0"]


def test_files_of_the_last_hour_are_evicted_when_the_limit_is_exceeded_twofold() -> None:
    assert evicted_names(_statuses(0.9, 0.5, 0.1), limit_bytes=149, now_ns=0) == ["0", "1"]


def test_files_that_are_new_by_a_clock_ahead_of_ours_are_not_evicted() -> None:
    assert evicted_names(_statuses(0.5, -0.1), limit_bytes=150, now_ns=0) == []


def test_files_from_the_far_future_are_not_protected() -> None:
    assert evicted_names(_statuses(0.5, -5), limit_bytes=150, now_ns=0) == ["1"]


def test_nothing_is_evicted_at_the_limit() -> None:
    assert evicted_names(_statuses(9, 8, 7), limit_bytes=300, now_ns=0) == []


def test_hit_sets_the_last_use_after_some_minutes(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    for hours in (2, -2):
        _age(root, KEY, hours)
        cache.get(KEY)
        assert abs(time.time_ns() - _file(root).stat().st_mtime_ns) < HOUR_NS // 60
    _age(root, KEY, hours=0.02)
    before = _file(root).stat().st_mtime_ns
    cache.get(KEY)
    assert _file(root).stat().st_mtime_ns == before


def test_files_of_dead_writers_are_removed_and_of_live_ones_kept(root: Path) -> None:
    root.mkdir(mode=0o700)
    for name, hours in (("dead", 2), ("alive", 0.1), ("ahead", -0.1)):
        path = root / f".{name}.tmp"
        path.write_bytes(b"half")
        os.utime(path, ns=(0, time.time_ns() - int(hours * HOUR_NS)))
    DiskCache(root).put(KEY, SECTIONS)
    assert sorted(os.listdir(root)) == [".ahead.tmp", ".alive.tmp", f"{KEY}.tile"]


def test_entries_lists_key_size_last_use_and_sections(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    cache.put(digest("old"), {})
    _age(root, digest("old"), hours=5)
    old, new = cache.entries()
    assert (old.key, old.sections) == (digest("old"), ())
    assert (new.key, new.sections) == (KEY, ("object", "metadata"))
    assert new.size_bytes == _file(root).stat().st_size
    assert new.last_use_ns == _file(root).stat().st_mtime_ns


def test_verify_names_damaged_entries_and_keeps_them(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    cache.put(digest("bad"), SECTIONS)
    path = _file(root, digest("bad"))
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert cache.verify() == [digest("bad")]
    assert path.exists()


@pytest.mark.parametrize("operation", ["entries", "verify"])
def test_entry_that_is_removed_while_it_is_listed_is_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    listed = cache._entry_files()
    monkeypatch.setattr(cache, "_entry_files", lambda: listed)
    _file(root).unlink()
    assert getattr(cache, operation)() == []


def test_system_without_directory_descriptors_joins_paths(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "_HAS_DESCRIPTORS", False)
    cache = DiskCache(root)
    assert cache.get(KEY) is None
    cache.put(KEY, SECTIONS)
    assert os.listdir(root) == [f"{KEY}.tile"]
    _age(root, KEY, hours=2)
    assert cache.get(KEY) == SECTIONS
    assert time.time_ns() - cache.entries()[0].last_use_ns < HOUR_NS
    assert cache.clear() == 1
    assert os.listdir(root) == []


def test_clear_removes_entries_and_leaves_other_files(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    (root / "notes.txt").write_bytes(b"mine")
    (root / "short.tile").write_bytes(b"mine")
    assert cache.clear() == 1
    assert sorted(os.listdir(root)) == ["notes.txt", "short.tile"]


def test_directory_that_disappears_is_made_again(root: Path) -> None:
    cache = DiskCache(root)
    cache.put(KEY, SECTIONS)
    _file(root).unlink()
    root.rmdir()
    assert cache.get(KEY) is None
    cache.put(KEY, SECTIONS)
    assert DiskCache(root).get(KEY) == SECTIONS


def test_json_values_round_trip(root: Path) -> None:
    value = {"best": {"BLOCK": 128}, "ms": [0.5, float("inf")], "none": None}
    DiskCache(root).put_json(KEY, value)
    assert DiskCache(root).get_json(KEY) == value
    assert DiskCache(root).get_json(digest("other")) is None


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[" * 100_000], ids=["cut", "no text", "deep"])
def test_json_section_that_is_no_json_is_a_miss(root: Path, text: bytes) -> None:
    DiskCache(root).put(KEY, {"json": text})
    assert DiskCache(root).get_json(KEY) is None


def test_default_cache_follows_the_environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(root))
    monkeypatch.setenv("TILEWRIGHT_CACHE_SIZE", "3M")
    cache = open_default()
    assert (cache.directory, cache.size_limit_bytes) == (root, 3 << 20)
    assert open_default() is cache
    monkeypatch.setenv("TILEWRIGHT_DISABLE_CACHE", "1")
    assert open_default().directory is None


def test_cache_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"  # what the environment's own hooks load
        "import tilewright.runtime.cache, tilewright.runtime.fingerprint\n"
        "heavy = {'numpy', 'xdsl', 'llvmlite', 'platformdirs', 'tempfile', 'subprocess',"
        " 'pickle', 'rich', 'click', 'filelock'}\n"
        "print(sorted(heavy & set(sys.modules) - before))"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
