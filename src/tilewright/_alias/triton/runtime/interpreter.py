"""`triton.runtime.interpreter`: kernels that are interpreted in place of compiled."""

from __future__ import annotations

from .errors import InterpreterError
from .jit import JITFunction


class _Interpreted(type):
    """Kernels are of this class while they are interpreted (`TRITON_INTERPRET=1`)."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, JITFunction) and instance.is_interpreted


class InterpretedFunction(JITFunction, metaclass=_Interpreted):
    """A kernel that the reference interpreter runs."""


__all__ = ["InterpretedFunction", "InterpreterError"]
