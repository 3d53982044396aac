"""Programs of NVIDIA's toolkit, by path and version."""

from __future__ import annotations

import re
from pathlib import Path

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError

_WHEELS = {name: f"nvidia-cuda-{name}" for name in ("cuobjdump", "nvdisasm")}
_RELEASE = re.compile(r"release (\d+\.\d+)")


class ToolNotFound(UnsupportedError, RuntimeError):
    """A program of NVIDIA's toolkit is not on this machine."""


@dataclass(frozen=True)
class NvidiaTool:
    """A program of NVIDIA's toolkit; `given` is the path that the user named.

    Raises: `ToolNotFound` when its path or version is asked for and it is not there.
    """

    name: str
    given: str | None = None

    @staticmethod
    def from_path(path: str) -> NvidiaTool | None:
        """The tool at a path; None where there is none."""
        return NvidiaTool(Path(path).name, path) if Path(path).is_file() else None

    def find(self) -> str | None:
        """The path, or None: what the user named, a toolkit's, a wheel's, one on PATH."""
        if self.given is not None:
            return self.given if Path(self.given).is_file() else None
        # Loads the target, which a program that only imports triton does without.
        from tilewright.targets.nvidia.toolchain import find_tool

        found = find_tool(self.name)
        return None if found is None else str(found)

    @property
    def path(self) -> str:
        """Where the program is."""
        found = self.find()
        if found is None:
            variable = f"TRITON_{self.name.upper().replace('-', '_')}_PATH"
            raise ToolNotFound(
                f"{self.given or self.name} is not on this machine",
                hint=f"pip install {_WHEELS.get(self.name, 'nvidia-cuda-nvcc')}, or set {variable}",
            )
        return found

    @property
    def version(self) -> str:
        """The release of the toolkit that it says it is from, such as `12.8`."""
        import subprocess  # few programs ask

        said = subprocess.check_output([self.path, "--version"], text=True)
        found = _RELEASE.search(said)
        return found[1] if found else ""

    def __str__(self) -> str:
        return self.given or self.find() or self.name
