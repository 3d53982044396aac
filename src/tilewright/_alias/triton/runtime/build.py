"""`triton.runtime.build`: extension modules that packages write in C.

Tilewright itself compiles nothing with a C compiler; this is for clients that do.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tilewright.runtime.fingerprint import digest
from tilewright.support.errors import TilewrightError, UnsupportedError

from .. import knobs
from .cache import get_cache_manager

_COMPILERS = ("cc", "gcc", "clang")


class BuildError(TilewrightError, RuntimeError):
    """The C compiler refuses a module of a client."""


def find_compiler() -> str:
    """The C compiler: `CC`, or the first on PATH. Raises: `UnsupportedError`."""
    candidates = (knobs.build.cc, *_COMPILERS)
    found = next((path for name in candidates if name and (path := shutil.which(name))), None)
    if found is None:
        raise UnsupportedError(
            "there is no C compiler on this machine",
            hint="install gcc or clang, or set CC; kernels themselves need none",
        )
    return found


def compile_module_from_src(
    src: str,
    name: str,
    library_dirs: Sequence[str] | None = None,
    include_dirs: Sequence[str] | None = None,
    libraries: Sequence[str] | None = None,
    ccflags: Sequence[str] | None = None,
) -> ModuleType:
    """The extension module `name` whose C source is `src`, compiled or from the cache.

    Raises: `BuildError` with the compiler's words; `UnsupportedError` without a compiler.
    """
    path = compile_so_from_src(src, name, library_dirs, include_dirs, libraries, ccflags)
    try:
        return _load_module_from_path(name, path)
    except ImportError:
        # What was kept is damaged, or of another Python.
        fresh = _compiled(src, name, library_dirs, include_dirs, libraries, ccflags)
        folder = tempfile.mkdtemp(prefix="tilewright-module-")
        kept = Path(folder, f"{name}{_suffix()}")
        kept.write_bytes(fresh)
        return _load_module_from_path(name, str(kept))


def compile_so_from_src(
    src: str,
    name: str,
    library_dirs: Sequence[str] | None = None,
    include_dirs: Sequence[str] | None = None,
    libraries: Sequence[str] | None = None,
    ccflags: Sequence[str] | None = None,
) -> str:
    """The path of the shared library of a C source, compiled or from the cache."""
    settings = (library_dirs, include_dirs, libraries, ccflags)
    key = digest(src, name, sys.version, sysconfig.get_platform(), repr(settings))
    cache = get_cache_manager(key)
    filename = f"{name}{_suffix()}"
    found = cache.get_file(filename)
    if found is not None:
        return found
    return cache.put(_compiled(src, name, *settings), filename, binary=True)


def _compiled(
    src: str,
    name: str,
    library_dirs: Sequence[str] | None,
    include_dirs: Sequence[str] | None,
    libraries: Sequence[str] | None,
    ccflags: Sequence[str] | None,
) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.c")
        path.write_text(src, encoding="utf-8")
        built = _build(
            name,
            str(path),
            folder,
            library_dirs or (),
            include_dirs or (),
            libraries or (),
            ccflags or (),
        )
        return Path(built).read_bytes()


def _build(
    name: str,
    src: str,
    srcdir: str,
    library_dirs: Sequence[str],
    include_dirs: Sequence[str],
    libraries: Sequence[str],
    ccflags: Sequence[str],
) -> str:
    """Compile the file `src` to a shared library in `srcdir`; its path. Raises: `BuildError`."""
    built = os.path.join(srcdir, f"{name}{_suffix()}")
    includes = (srcdir, sysconfig.get_path("include"), *include_dirs)
    import subprocess  # few programs compile C

    command = [
        *(find_compiler(), src, "-O3", "-shared", "-fPIC", "-o", built),
        *(f"-I{folder}" for folder in includes),
        *(f"-L{folder}" for folder in library_dirs),
        *(f"-l{library}" for library in libraries),
        *ccflags,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{command[0]} refuses the module {name}:\n{done.stderr.strip()}")
    return built


def _load_module_from_path(name: str, path: str) -> ModuleType:
    """The extension module in a shared library. Raises: `ImportError`."""
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no extension module")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _suffix() -> str:
    return str(sysconfig.get_config_var("EXT_SUFFIX") or ".so")


__all__ = ["BuildError", "compile_module_from_src", "compile_so_from_src", "find_compiler"]
