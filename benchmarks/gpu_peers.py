"""The kernels of `gpu_kernels.py` compiled twice: by the real Triton, and by us under its name."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import tilewright

_KERNELS = Path(__file__).with_name("gpu_kernels.py")
_ALIAS = Path(tilewright.__file__).parent / "_alias"


@functools.cache
def ours() -> ModuleType:
    """The kernels as Tilewright compiles them."""
    with _as_triton():
        return _load("gpu_kernels_ours")


@functools.cache
def theirs() -> ModuleType:
    """The kernels as the installed Triton compiles them."""
    return _load("gpu_kernels_theirs")


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, _KERNELS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    descriptors = importlib.import_module("triton.tools.tensor_descriptor")
    module.TensorDescriptor = descriptors.TensorDescriptor
    return module


@contextmanager
def _as_triton() -> Generator[None]:
    """Let `import triton` find ours, and put the real one back."""
    real = _taken_out()
    sys.path.insert(0, str(_ALIAS))
    try:
        yield
    finally:
        sys.path.remove(str(_ALIAS))
        _taken_out()
        sys.modules.update(real)


def _taken_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == "triton" or name.startswith("triton.")]
    return {name: sys.modules.pop(name) for name in names}
