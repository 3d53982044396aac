"""`triton._C.libtriton.ir`: the IR of kernels, for clients that walk it."""

from __future__ import annotations

from ..._names import refuse


class context:
    """What IR belongs to in MLIR; the IR here needs none."""


def load_dialects(context: context) -> None:
    """Nothing: every operation is known from the start."""


def __getattr__(name: str) -> object:
    if name not in ("module", "operation", "block", "region", "value"):
        return _missing(name)
    from ...compiler import ir  # loads the compiler, which launches do without

    names = {"module": "Module", "operation": "OperationView", "value": "Value"}
    return getattr(ir, names.get(name) or f"{name.capitalize()}View")


_missing = refuse(__name__, {"builder": "write a jit function; there is no builder of IR"})
