"""`triton._C.libtriton.nvidia`: what programs measure themselves against."""

from __future__ import annotations

from ...._names import refuse
from . import cublas as cublas

__getattr__ = refuse(__name__, {})
