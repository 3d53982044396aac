"""Where ptxas and the disassemblers of this machine are, and which version ptxas is."""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tilewright.support.dataclass import dataclass
from tilewright.support.environment import cuda_home
from tilewright.support.options import runtime_options
from tilewright.targets.nvidia.errors import AssemblerFailed, AssemblerNotFound

_DEFAULT_HOME = Path("/usr/local/cuda")
_RELEASE = re.compile(r"release [\d.]+, V(?P<version>[\d.]+)")
# Chosen, not measured: a tool says its version at once; this ends one that hangs.
_VERSION_TIMEOUT_S = 30


@dataclass(frozen=True)
class Assembler:
    """A ptxas that was found and asked for its version."""

    path: Path
    version: str


def find_assembler() -> Assembler:
    """The ptxas of this machine: by option, on PATH, in a CUDA home, in NVIDIA's wheel.

    Raises: AssemblerNotFound, AssemblerFailed when it cannot say its version.
    """
    chosen = runtime_options().ptxas
    if chosen is not None:
        if not chosen.is_file():
            raise AssemblerNotFound(
                f"TILEWRIGHT_PTXAS is {chosen}, which is no file",
                hint="set it to the path of a ptxas, or unset it",
            )
        return _with_version(chosen)
    path = find_tool("ptxas")
    if path is None:
        raise AssemblerNotFound("ptxas, NVIDIA's assembler, is not on this machine")
    return _with_version(path)


def find_tool(name: str) -> Path | None:
    """A program of the CUDA toolkit: on PATH, in a CUDA home, in NVIDIA's wheels; or None."""
    return next(iter(_candidates(name)), None)


def _candidates(name: str) -> Iterator[Path]:
    on_path = shutil.which(name)
    if on_path is not None:
        yield Path(on_path)
    for home in (cuda_home(), _DEFAULT_HOME):
        if home is not None and (home / "bin" / name).is_file():
            yield home / "bin" / name
    yield from sorted(_wheel_tools(name), reverse=True)


def _wheel_tools(name: str) -> Iterator[Path]:
    """The program in the wheels of NVIDIA that are installed, which share one namespace."""
    spec = importlib.util.find_spec("nvidia")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from Path(location).glob(f"*/bin/{name}")


def _with_version(path: Path) -> Assembler:
    status = path.stat()
    return _asked(path, status.st_mtime_ns, status.st_size)


@functools.cache
def _asked(path: Path, modified_ns: int, size_bytes: int) -> Assembler:
    """The assembler of a file that has not changed since it was asked."""
    try:
        answer = subprocess.run(
            [str(path), "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AssemblerFailed(
            f"{path} cannot be run: {error}", hint="install another ptxas or set TILEWRIGHT_PTXAS"
        ) from error
    match = _RELEASE.search(answer.stdout)
    if match is None:
        raise AssemblerFailed(
            f"{path} does not say its version", hint="set TILEWRIGHT_PTXAS to NVIDIA's ptxas"
        )
    return Assembler(path, match["version"])
