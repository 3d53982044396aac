"""`triton._C.libtriton`: what clients find in Triton's library of C++; here it is Python."""

from __future__ import annotations

from ..._names import refuse
from . import ir as ir

_REASON = "Tilewright has no library of C++; `tilewright ir FILE` prints every stage of a kernel"
__getattr__ = refuse(
    __name__, {name: _REASON for name in ("passes", "llvm", "nvidia", "amd", "gluon_ir")}
)
