"""A private directory: files that only this user can have written, published whole.

The directory is created 0700 and refused unless it belongs to the effective user, is closed
to the writes of others and is no symbolic link. On systems with directory descriptors every
access goes through one that has just been checked, so a directory that is exchanged between
the check and the access is not followed. Elsewhere (Windows) paths are joined, unchecked.

`OSError` leaves every method: what a failure means is the caller's decision.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tilewright.support.dataclass import dataclass

_TEMPORARY_SUFFIX = ".tmp"
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
# A planted FIFO would block an open for reading for ever.
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_HAS_DESCRIPTORS = hasattr(os, "O_DIRECTORY") and os.open in os.supports_dir_fd


@dataclass(frozen=True)
class FileStatus:
    """The name, size and last use of one regular file."""

    name: str
    size_bytes: int
    last_use_ns: int


class UntrustedDirectory(OSError):
    """The directory may hold files that somebody else wrote."""


class UntrustedFile(OSError):
    """The name is no regular file that only this user can have written."""


@dataclass(frozen=True)
class PrivateDirectory:
    """A directory of this user's files; `path` need not exist yet."""

    path: Path

    def read(self, name: str, limit_bytes: int) -> tuple[bytes, FileStatus]:
        """The first `limit_bytes` bytes of the file, and its status.

        Raises: `FileNotFoundError`; `UntrustedFile` for a link, a device, another's file.
        """
        with self._opened() as at:
            file = at.open_existing(name)
            try:
                found = os.fstat(file)
                if not stat.S_ISREG(found.st_mode) or not _is_private(found):
                    raise UntrustedFile(errno.EPERM, "no private regular file", name)
                data = _read_all(file, min(found.st_size, limit_bytes))
            finally:
                os.close(file)
        return data, FileStatus(name, found.st_size, found.st_mtime_ns)

    def publish(self, name: str, data: bytes) -> None:
        """Let `name` hold `data`, in one step: a reader sees the old file or the new one.

        Nothing is forced to the disk, which takes milliseconds: after a power failure an entry
        may be gone or damaged, which its checksum tells.
        """
        self.create()
        with self._opened() as at:
            # Random, since process numbers repeat between the machines that share a disk.
            temporary = f".{os.urandom(12).hex()}{_TEMPORARY_SUFFIX}"
            try:
                at.write_new(temporary, data)
                os.replace(at.name(temporary), at.name(name), src_dir_fd=at.fd, dst_dir_fd=at.fd)
            except BaseException:
                with suppress(OSError):
                    os.unlink(at.name(temporary), dir_fd=at.fd)
                raise

    def touch(self, name: str) -> None:
        """Set the last use of the file to now."""
        with self._opened() as at:
            os.utime(at.name(name), dir_fd=at.fd)

    def remove(self, name: str) -> None:
        """Remove the file, link or empty directory `name`; one that is gone is no error."""
        with self._opened() as at, suppress(FileNotFoundError):
            try:
                os.unlink(at.name(name), dir_fd=at.fd)
            except (IsADirectoryError, PermissionError):
                os.rmdir(at.name(name), dir_fd=at.fd)

    def files(self) -> list[FileStatus]:
        """Every regular file but unfinished ones, least recently used first."""
        found = [file for file in self._scan() if not _is_temporary(file.name)]
        return sorted(found, key=lambda file: (file.last_use_ns, file.name))

    def unfinished(self) -> list[FileStatus]:
        """The temporary files of writers that are at work or died."""
        return [file for file in self._scan() if _is_temporary(file.name)]

    def create(self) -> None:
        """Make the directory and its missing parents, all closed to other users."""
        missing = [self.path]
        while not missing[-1].parent.exists() and missing[-1].parent != missing[-1]:
            missing.append(missing[-1].parent)
        for path in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)

    def _scan(self) -> list[FileStatus]:
        files: list[FileStatus] = []
        try:
            with self._opened() as at, os.scandir(at.scannable()) as found:
                for entry in found:
                    # Another process may remove the file between the listing and the look.
                    with suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            file = FileStatus(entry.name, status.st_size, status.st_mtime_ns)
                            files.append(file)
        except FileNotFoundError:
            return []
        return files

    @contextmanager
    def _opened(self) -> Generator[_Opened]:
        if not _HAS_DESCRIPTORS:
            yield _Opened(None, self.path)
            return
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _check_private(os.fstat(fd), self.path)
            yield _Opened(fd, self.path)
        finally:
            os.close(fd)


@dataclass(frozen=True)
class _Opened:
    """A checked directory: names are relative to `fd`, or joined to `path` without one."""

    fd: int | None
    path: Path

    def name(self, name: str) -> str:
        return name if self.fd is not None else os.path.join(self.path, name)

    def scannable(self) -> int | Path:
        return self.path if self.fd is None else self.fd

    def open_existing(self, name: str) -> int:
        flags = os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY
        try:
            return os.open(self.name(name), flags, dir_fd=self.fd)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):  # a symbolic link, a socket
                raise UntrustedFile(error.errno, "no private regular file", name) from error
            raise

    def write_new(self, name: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _BINARY
        file = os.open(self.name(name), flags, 0o600, dir_fd=self.fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)


def _read_all(file: int, size_bytes: int) -> bytes:
    chunks: list[bytes] = []
    while size_bytes > 0 and (chunk := os.read(file, size_bytes)):
        chunks.append(chunk)
        size_bytes -= len(chunk)
    return b"".join(chunks)


def _is_private(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or (
        status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(_TEMPORARY_SUFFIX)


def _check_private(status: os.stat_result, path: Path) -> None:
    if not _is_private(status):
        reason = "it belongs to another user, or others may write to it (chmod 700 closes it)"
        raise UntrustedDirectory(errno.EPERM, reason, str(path))
