"""Reproducers: a compile that went wrong, as a file that runs it again.

While a request is compiled, a *breadcrumb* with everything that is needed to repeat it lies
in the directory; it is removed when the compiler comes back, be it with an error. LLVM can
end the process, and then the breadcrumb stays: the next process finds that nobody holds its
lock any more, makes a reproducer of it and says so.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tilewright.compiler.request import CompileRequest
from tilewright.runtime.directory import PrivateDirectory
from tilewright.runtime.fingerprint import installed_version
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

FORMAT = "tilewright-reproducer-1"
DIED = "the process died while it compiled"
_SUFFIX = ".reproducer"
_PENDING = ".pending"
_MAX_BYTES = 64 << 20
_ROOT = __name__.partition(".")[0]
_PACKAGES = ("xdsl", "llvmlite", "numpy")


class ReproducerWarning(UserWarning):
    """An earlier process died while it compiled a kernel."""


@dataclass(frozen=True)
class Reproducer:
    """A request with the stage that failed, the message, and the versions at work."""

    request: CompileRequest
    stage: str
    message: str
    versions: dict[str, str]

    def to_bytes(self) -> bytes:
        """This reproducer as JSON that a person can read."""
        document = {
            "format": FORMAT,
            "stage": self.stage,
            "message": self.message,
            "versions": self.versions,
            "request": json.loads(self.request.to_bytes()),
        }
        return json.dumps(document, indent=1, sort_keys=True).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Reproducer:
        """The reproducer that `to_bytes` wrote. Raises: `InternalError` for anything else."""
        try:
            document = json.loads(data)
            if document["format"] != FORMAT:
                raise ValueError(document["format"])
            request = CompileRequest.from_bytes(json.dumps(document["request"]).encode())
            versions = {str(name): str(text) for name, text in document["versions"].items()}
            return Reproducer(request, str(document["stage"]), str(document["message"]), versions)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InternalError(
                "this file is no reproducer", hint="pass a file that an error message named"
            ) from error


def replay_command(path: Path) -> str:
    """The command that runs a reproducer again."""
    return f"tilewright replay {path}"


def reproducer_hint(path: Path) -> str:
    """What an `InternalError` tells the user to do."""
    return f"this is a defect of the compiler; rerun it with `{replay_command(path)}`"


@functools.cache
def current_versions() -> dict[str, str]:
    """The versions of what takes part in a compile, by name."""
    versions = {"python": sys.version.split()[0], "platform": sys.platform}
    # Not imported: the root of the package stands above this layer, and is loaded already.
    versions["tilewright"] = str(vars(sys.modules[_ROOT])["__version__"])
    for package in _PACKAGES:
        version = installed_version(package)
        if version is not None:
            versions[package] = version
    return versions


@dataclass(frozen=True)
class ReproducerStore:
    """The directory of reproducers and breadcrumbs; `directory` None keeps nothing.

    What the disk refuses is left out in silence: an error about an error helps nobody.
    """

    directory: Path | None

    def write(self, reproducer: Reproducer, key: str) -> Path | None:
        """The file that now holds the reproducer, or None where none could be written."""
        if self.directory is None:
            return None
        name = f"{reproducer.request.name}-{key[:12] or 'request'}{_SUFFIX}"
        with suppress(OSError):
            PrivateDirectory(self.directory).publish(name, reproducer.to_bytes())
            return self.directory / name
        return None

    @contextmanager
    def breadcrumb(self, request: CompileRequest, key: str) -> Generator[None]:
        """A block in which the process may die; whoever comes next learns of it."""
        held = None if self.directory is None else self._leave(request, key)
        try:
            yield
        finally:
            if held is not None:
                path, file = held
                with suppress(OSError):
                    path.unlink()
                os.close(file)

    def _leave(self, request: CompileRequest, key: str) -> tuple[Path, int] | None:
        assert self.directory is not None
        crumb = Reproducer(request, "unknown", DIED, current_versions())
        name = f"{request.name}-{key[:12]}-{os.getpid()}-{os.urandom(4).hex()}{_PENDING}"
        path = self.directory / name
        try:
            PrivateDirectory(self.directory).create()
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:
            return None
        try:
            _lock(file)
            # No fsync: the process may die here, the machine is not expected to.
            os.write(file, crumb.to_bytes())
        except OSError:
            os.close(file)
            with suppress(OSError):
                path.unlink()
            return None
        return path, file

    def adopt_orphans(self) -> list[Path]:
        """Make reproducers of breadcrumbs whose process is gone; the new files."""
        if self.directory is None:
            return []
        adopted: list[Path] = []
        with suppress(OSError):
            names = [f.name for f in PrivateDirectory(self.directory).files()]
            for name in names:
                path = self.directory / name
                if name.endswith(_PENDING) and _is_orphan(path):
                    renamed = path.with_suffix(_SUFFIX)
                    with suppress(OSError):
                        path.rename(renamed)
                        adopted.append(renamed)
        return adopted


def read_reproducer(path: Path) -> Reproducer:
    """The reproducer in a file. Raises: `InternalError` for a file that holds none."""
    try:
        with open(path, "rb") as file:
            return Reproducer.from_bytes(file.read(_MAX_BYTES))
    except OSError as error:
        raise InternalError(
            f"{path} cannot be read: {error.strerror}",
            hint="pass a file that an error message named",
        ) from error


@functools.cache
def tell_of_orphans(directory: Path | None) -> None:
    """Say once a process which compiles earlier processes did not survive."""
    for path in ReproducerStore(directory).adopt_orphans():
        warnings.warn(
            f"an earlier process died while it compiled a kernel; `{replay_command(path)}` "
            "runs that compile again in a process of its own",
            ReproducerWarning,
            stacklevel=2,
        )


def _lock(file: int) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_orphan(path: Path) -> bool:
    """Whether nobody holds the breadcrumb any more; unknown counts as held."""
    if fcntl is None:
        return False
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between its creation and its lock a breadcrumb is empty.
            return os.fstat(file).st_size > 0
        finally:
            os.close(file)
    return False


def defect(error: Exception, stage: str) -> InternalError:
    """`error` as an `InternalError` that names the last stage of the compiler that ended."""
    if isinstance(error, InternalError):
        return error
    text = str(error).strip().splitlines()
    detail = f": {text[0][:200]}" if text else ""
    return InternalError(f"the compiler failed after {stage}: {type(error).__name__}{detail}")
