"""`triton.tools.disasm`: the machine code of a compiled kernel, as text."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from .. import knobs


def path_to_cuobjdump() -> str:
    """NVIDIA's program that takes cubins apart. Raises: `UnsupportedError` where it is missing."""
    return knobs.nvidia.cuobjdump.path


def get_sass(cubin_asm: bytes, fun: str | None = None) -> str:
    """The machine code of a cubin, or of one function of it, as text."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(cubin_asm)
        return extract(file.name, fun)


def extract(file_path: str, fun: str | None) -> str:
    """The machine code of a cubin in a file, or of one function of it, as text."""
    chosen = [] if fun is None else ["-fun", fun]
    command = [path_to_cuobjdump(), "-sass", *chosen, file_path]
    return subprocess.check_output(command, text=True)


__all__ = ["extract", "get_sass", "path_to_cuobjdump"]
