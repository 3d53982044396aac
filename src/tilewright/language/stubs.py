"""How functions of the language look from Python: names that only kernels can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from tilewright.support.errors import HostCall

Stub = TypeVar("Stub", bound=Callable[..., object])

EXTENSIONS: dict[str, object] = {}
"""The extensions of this process by name (`language/extensions.py`); most have none."""


def op(key: str) -> Callable[[Stub], Stub]:
    """Mark a stub as the function `key` of the language."""

    def mark(stub: Stub) -> Stub:
        stub.__tilewright_op__ = key  # type: ignore[attr-defined]  # functions take attributes
        return stub

    return mark


def only_in_kernels(key: str) -> NoReturn:
    """Refuse a call from ordinary Python.

    Raises: HostCall.
    """
    raise HostCall(f"tl.{key} is called outside of a kernel")
