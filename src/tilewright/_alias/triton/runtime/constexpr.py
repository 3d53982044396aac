"""Functions that run while a kernel is compiled, with the surface of Triton's class."""

from __future__ import annotations

import re
import textwrap
from types import FunctionType

from tilewright.language.host import ConstexprFunction as _ConstexprFunction

from .interface import JITCallable


def definition_index(text: str) -> int:
    """Where the definition starts in the text of a function with its decorators."""
    found = re.search(r"^[ \t]*def\s+\w+\s*\(", text, re.MULTILINE)
    return 0 if found is None else found.start()


class ConstexprFunction(_ConstexprFunction, JITCallable):
    """A function that kernels call with compile-time values."""

    @property
    def src(self) -> str:
        """The source from `def` on."""
        whole = self.__tilewright_text__
        if whole is None:
            raise OSError(f"Python keeps no source text for {self.fn.__qualname__}")
        text = textwrap.dedent(whole[0])
        return text[definition_index(text) :]

    @property
    def cache_key(self) -> str:
        """The identity of the function's source."""
        return self.src


def constexpr_function(fn: FunctionType) -> ConstexprFunction:
    """Make an ordinary Python function callable from kernels, on compile-time values."""
    return ConstexprFunction(fn)
