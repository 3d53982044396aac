"""`triton.tools`: host-side helpers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .._names import refuse
from . import disasm, tensor_descriptor

if TYPE_CHECKING:
    from . import mxfp, ragged_tma
    from .linear_layout import LinearLayout

_MODULES = ("compile", "link", "linear_layout", "mxfp", "ragged_tma")
_missing = refuse(
    __name__,
    {"experimental_descriptor": "use triton.tools.tensor_descriptor.TensorDescriptor"},
)


def __getattr__(name: str) -> object:
    if name == "LinearLayout":  # loads NumPy
        return import_module(f"{__name__}.linear_layout").LinearLayout
    return import_module(f"{__name__}.{name}") if name in _MODULES else _missing(name)


__all__ = ["LinearLayout", "disasm", "mxfp", "ragged_tma", "tensor_descriptor"]
