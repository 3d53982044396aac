"""`triton._C.libtriton`: what clients find in Triton's library of C++; here it is Python."""

from __future__ import annotations

from importlib import import_module

from ..._names import refuse
from . import ir as ir

_REASON = "Tilewright has no library of C++; `tilewright ir FILE` prints every stage of a kernel"
_missing = refuse(__name__, dict.fromkeys(("passes", "llvm", "amd", "gluon_ir"), _REASON))


def __getattr__(name: str) -> object:
    if name == "nvidia":  # few programs compare themselves with cuBLAS
        return import_module(f"{__name__}.nvidia")
    return _missing(name)
