"""A kernel's source as `triton.runtime.jit` shows it, and as clients replace it."""

from __future__ import annotations

import ast
import textwrap

from tilewright.jit import JITFunction
from tilewright.support.revisions import REVISIONS, function_name

from .constexpr import definition_index


class KernelWithText(JITFunction):
    """A kernel that shows its text, and compiles another one that it is given in its place."""

    _text: tuple[str, int] | None = None
    _shown_lines: list[str] | None = None
    _key: str | None = None

    @property
    def cache_key(self) -> str:
        """The identity of the sources of this kernel and of what it reaches, in hex."""
        if self._key is None:
            self._key = super().cache_key
        return self._key

    @property
    def hash(self) -> str:
        """The same as `cache_key`; None assigned to it has it found anew, with the source."""
        return self.cache_key

    @hash.setter
    def hash(self, key: str | None) -> None:
        self._key = key
        if key is None:
            self.reconsider()

    @property
    def raw_src(self) -> list[str]:
        """The lines of the function in its file, decorators included.

        Lines assigned to it are what tools are shown, of a kernel written from another.
        """
        return self._shown_lines or self._whole_text()[0].splitlines(keepends=True)

    @raw_src.setter
    def raw_src(self, lines: list[str]) -> None:
        self._shown_lines = list(lines)

    @property
    def starting_line_number(self) -> int:
        """The line of the file where the decorators start; messages count from it."""
        return self._whole_text()[1]

    @starting_line_number.setter
    def starting_line_number(self, line: int) -> None:
        self._text = (self._whole_text()[0], line)
        self.reconsider()

    @property
    def def_line(self) -> int:
        """The line of the file where `def` stands."""
        text, first = self._whole_text()
        return first + text[: definition_index(text)].count("\n")

    @property
    def def_indent(self) -> int:
        """The columns that `def` is indented by in the file."""
        text = self._whole_text()[0]
        line = text[definition_index(text) :]
        return len(line) - len(line.lstrip())

    @property
    def src(self) -> str:
        """The source from `def` on, without decorators."""
        return _from_def(self._whole_text()[0])

    def _whole_text(self) -> tuple[str, int]:
        if self._text is None:
            self._text = super().__tilewright_text__
        return self._text

    @property
    def __tilewright_text__(self) -> tuple[str, int]:
        """The text to compile: what was loaded, or what replaced it."""
        return self._whole_text()

    def _unsafe_update_src(self, src: str) -> None:
        """Compile `src` in place of the function's own text from now on.

        The function's own text given back makes it what it was, with the key it had.
        """
        loaded = super().__tilewright_text__
        is_own = src == _from_def(loaded[0])
        self._text = loaded if is_own else (src, self.starting_line_number)
        self.reconsider()
        REVISIONS.made(function_name(self.fn))

    def reconsider(self) -> None:
        """Look at the sources again at the next launch."""
        self._key = None
        super().reconsider()

    def parse(self) -> object:
        """The syntax tree of the source."""
        return ast.parse(self.src)


def _from_def(text: str) -> str:
    """The text of a function from `def` on, without decorators."""
    plain = textwrap.dedent(text)
    return plain[definition_index(plain) :]
