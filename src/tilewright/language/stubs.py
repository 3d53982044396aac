"""How functions of the language look from Python: names that only kernels can call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NoReturn, TypeVar

from tilewright.support.errors import HostCall

Stub = TypeVar("Stub", bound=Callable[..., object])

EXTENSIONS: dict[str, object] = {}
"""The extensions of this process by name (`language/extensions.py`); most have none."""


def shown_name(key: str) -> str:
    """How a program calls a function of the language.

    *Example*

    >>> shown_name("load")
    'tl.load'
    """
    return key if key.rpartition(".")[0] in EXTENSIONS else f"tl.{key}"


def op(key: str) -> Callable[[Stub], Stub]:
    """Make the function `key` of the language of a stub: its signature and documentation.

    Raises: HostCall where ordinary Python calls it.
    """

    def in_kernels(stub: Stub) -> Stub:
        @functools.wraps(stub)
        def refuse(*_: object, **__: object) -> NoReturn:
            raise HostCall(f"tl.{key} is called outside of a kernel")

        refuse.__dict__["__tilewright_op__"] = key
        return refuse  # type: ignore[return-value]  # it takes the stub's place

    return in_kernels
