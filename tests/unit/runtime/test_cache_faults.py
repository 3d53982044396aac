"""Whatever system call fails, the cache answers, warns once at most, and leaves whole files."""

from __future__ import annotations

import errno
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.concurrency.faulty_os import FaultyOs
from tilewright.runtime import directory as directory_module
from tilewright.runtime.cache import CacheWarning, DiskCache
from tilewright.runtime.fingerprint import digest

KEY = digest("key")
OLD = {"data": b"old" * 50}
NEW = {"data": b"new" * 70}
CODES = [
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EROFS,
    errno.EACCES,
    errno.EBUSY,
    errno.ESTALE,
    errno.EMFILE,
    errno.ENOENT,
    errno.ELOOP,
]
MAX_STEPS = 80


def _failing(code: int, hits: Callable[[str, int], bool]) -> Callable[[str, int], None]:
    def fail(step: str, count: int) -> None:
        if hits(step, count):
            raise OSError(code, os.strerror(code))

    return fail


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def _with_old_entry(root: Path) -> DiskCache:
    """A cache whose next hit sets the last use and whose next put sweeps."""
    DiskCache(root).put(KEY, OLD)
    then = time.time_ns() - 7200 * 10**9
    os.utime(root / f"{KEY}.tile", ns=(then, then))
    dead = root / ".dead.tmp"
    dead.write_bytes(b"")
    os.utime(dead, ns=(then, then))
    return DiskCache(root)


def _put_under(cache: DiskCache, faulty: FaultyOs, monkeypatch: pytest.MonkeyPatch) -> int:
    """Put and read `NEW` under faults; the number of warnings."""
    with warnings.catch_warnings(record=True) as caught, monkeypatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(directory_module, "os", faulty)
        cache.put(KEY, NEW)
    assert all(warning.category is CacheWarning for warning in caught)
    assert cache.get(KEY) == NEW
    return len(caught)


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("when", ["before", "after"])
def test_put_survives_a_fault_at_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, when: str
) -> None:
    descriptors = _open_descriptors()
    for step in range(MAX_STEPS):
        root = tmp_path / str(step)
        cache = _with_old_entry(root)
        faulty = FaultyOs(**{when: _failing(code, lambda _, count, at=step: count == at)})
        assert _put_under(cache, faulty, monkeypatch) <= 1
        assert DiskCache(root).get(KEY) in (OLD, NEW)
        assert DiskCache(root).verify() == []
        if faulty.count <= step:
            break
    else:
        pytest.fail("the put takes more steps than the test looks at")
    assert _open_descriptors() == descriptors


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_put_survives_a_disk_that_fails_from_some_step_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    for step in range(MAX_STEPS):
        root = tmp_path / str(step)
        cache = _with_old_entry(root)
        faulty = FaultyOs(before=_failing(code, lambda _, count, at=step: count >= at))
        assert _put_under(cache, faulty, monkeypatch) <= 1
        assert DiskCache(root).get(KEY) in (OLD, NEW)
        if faulty.count <= step:
            return
    pytest.fail("the put takes more steps than the test looks at")


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_get_under_a_fault_is_the_value_or_a_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    for step in range(MAX_STEPS):
        root = tmp_path / str(step)
        cache = _with_old_entry(root)
        faulty = FaultyOs(before=_failing(code, lambda _, count, at=step: count == at))
        with warnings.catch_warnings(record=True) as caught, monkeypatch.context() as patch:
            warnings.simplefilter("always")
            patch.setattr(directory_module, "os", faulty)
            assert cache.get(KEY) in (OLD, None)
        assert len(caught) <= 1
        if faulty.count <= step:
            return
    pytest.fail("the get takes more steps than the test looks at")


@pytest.mark.parametrize("operation", ["entries", "verify", "clear"])
def test_listing_survives_a_fault_at_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    for step in range(MAX_STEPS):
        cache = _with_old_entry(tmp_path / str(step))
        faulty = FaultyOs(before=_failing(errno.EIO, lambda _, count, at=step: count == at))
        with warnings.catch_warnings(record=True), monkeypatch.context() as patch:
            warnings.simplefilter("always")
            patch.setattr(directory_module, "os", faulty)
            getattr(cache, operation)()
        if faulty.count <= step:
            return
    pytest.fail("the operation takes more steps than the test looks at")


def test_failed_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cache"
    cache = DiskCache(root)
    is_write = _failing(errno.ENOSPC, lambda step, _: step == "write")
    assert _put_under(cache, FaultyOs(before=is_write), monkeypatch) == 1
    assert os.listdir(root) == []


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "cache"
    assert _put_under(DiskCache(root), FaultyOs(half_writes=True), monkeypatch) == 0
    assert DiskCache(root).get(KEY) == NEW


def test_full_disk_warns_once_and_later_entries_reach_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cache"
    cache = DiskCache(root)
    is_write = _failing(errno.ENOSPC, lambda step, _: step == "write")
    assert _put_under(cache, FaultyOs(before=is_write), monkeypatch) == 1
    assert _put_under(cache, FaultyOs(before=is_write), monkeypatch) == 0
    assert _put_under(cache, FaultyOs(), monkeypatch) == 0
    assert DiskCache(root).get(KEY) == NEW


def test_read_only_directory_still_serves_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cache"
    cache = _with_old_entry(root)
    changes = {"mkdir", "write", "replace", "unlink", "utime"}
    faulty = FaultyOs(before=_failing(errno.EROFS, lambda step, _: step in changes))
    monkeypatch.setattr(directory_module, "os", faulty)
    assert cache.get(KEY) == OLD
    with pytest.warns(CacheWarning, match="Read-only file system"):
        cache.put(digest("new"), NEW)
    assert cache.get(digest("new")) == NEW


def test_interrupted_put_removes_its_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(step: str, _: int) -> None:
        if step == "replace":
            raise KeyboardInterrupt

    monkeypatch.setattr(directory_module, "os", FaultyOs(before=interrupt))
    with pytest.raises(KeyboardInterrupt):
        DiskCache(tmp_path / "cache").put(KEY, NEW)
    assert os.listdir(tmp_path / "cache") == []
