"""Functions that run in Python while a kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any

from tilewright.language.core import constexpr
from tilewright.support.revisions import REVISIONS, function_name
from tilewright.support.source import function_text, loaded_lines


class ConstexprFunction:
    """A function that kernels call with compile-time values; made by `constexpr_function`.

    On the host it is called like the function it wraps.
    """

    __tilewright_constexpr_function__ = True

    def __init__(self, fn: FunctionType) -> None:
        self.fn = fn
        self._lines = loaded_lines(fn)
        update_wrapper(self, fn)
        REVISIONS.made(function_name(fn))

    @property
    def __tilewright_text__(self) -> tuple[str, int] | None:
        """The text that was loaded, and its first line."""
        return function_text(self.fn, self._lines)

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., object]:
        """The function as a method of `instance`; itself from the class."""
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The function's result on plain values: constexprs are unwrapped."""
        plain = [_plain(value) for value in args]
        return self.fn(*plain, **{name: _plain(value) for name, value in kwargs.items()})


def _plain(value: object) -> object:
    return value.value if isinstance(value, constexpr) else value


def constexpr_function(function: Callable[..., object]) -> ConstexprFunction:
    """Make an ordinary Python function callable from kernels, on compile-time values.

    A tile, a pointer or a descriptor is given as it is: the function can ask for its dtype and its
    shape, not for its value. Its source is kept with the kernel's; it may use other such functions,
    modules, Python's builtins and constants, and its result is a compile-time value.
    """
    assert isinstance(function, FunctionType)
    return ConstexprFunction(function)
