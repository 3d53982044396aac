"""How names of Tilewright appear under `triton`: with its module name, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from types import ModuleType
from typing import NoReturn

from tilewright.support.errors import HostCall, UnsupportedError

BUILTIN_MARKER = "__triton_builtin__"
_OP_MARKER = "__tilewright_op__"
# On functions of the language that Python may call too.
_HOST_MARKER = "__tilewright_on_host__"
_SERVED = "docs/triton.md lists what is served"


class NameNotServed(UnsupportedError, AttributeError):
    """A name of Triton that Tilewright does not serve."""

    help = _SERVED


class HostCallError(HostCall, ValueError):
    """A function of the language is called outside of a kernel."""


def refuse(module: str, reasons: Mapping[str, str]) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module: names that are missing, with what to use in their place.

    A dunder is an ordinary AttributeError: Python itself asks for those.
    """

    def missing(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise NameNotServed(
            f"{module}.{name} is not served by Tilewright", hint=reasons.get(name, _SERVED)
        )

    return missing


def public_function(original: Callable[..., object], module: str) -> Callable[..., object]:
    """A function of the language that says it comes from `module`, and mostly refuses host calls.

    Clients write `from {f.__module__} import {f.__name__}` into sources that they generate.
    """
    name = getattr(original, "__name__", "function")

    def function(*args: object, **kwargs: object) -> object:
        if hasattr(original, _HOST_MARKER):
            return original(*args, **kwargs)
        raise HostCallError(
            f"tl.{name} is called outside of a kernel. Did you forget to add @triton.jit ?"
        )

    update_wrapper(function, original)
    function.__module__ = module
    setattr(function, BUILTIN_MARKER, True)
    return function


def public_names(source: ModuleType, module: str, names: Iterable[str]) -> dict[str, object]:
    """The members of a module of the language, its functions as those of `module`."""
    found: dict[str, object] = {}
    for name in names:
        value: object = getattr(source, name)
        if callable(value) and hasattr(value, _OP_MARKER):
            value = public_function(value, module)
        found[name] = value
    return found
