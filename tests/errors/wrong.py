"""How wrong programs are registered and how their messages are made independent of position."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tilewright import JITFunction, TilewrightError


def tile(*shape: int, dtype: str = "float32") -> np.ndarray:
    """An argument for a kernel that never runs."""
    return np.zeros(shape or (64,), dtype)


@dataclass
class WrongPrograms:
    """The wrong programs of one test module, by name."""

    cases: dict[str, tuple[JITFunction, tuple[object, ...], dict[str, object]]] = field(
        default_factory=dict
    )

    def __call__(self, *args: object, **kwargs: object) -> Callable[[JITFunction], JITFunction]:
        """Register a kernel with the arguments it is launched with."""

        def register(kernel: JITFunction) -> JITFunction:
            name = kernel.fn.__name__
            assert name not in self.cases, name
            self.cases[name] = (kernel, args, kwargs)
            return kernel

        return register

    def message(self, name: str) -> str:
        """What a user sees, with lines counted from the kernel's decorator."""
        kernel, args, kwargs = self.cases[name]
        with pytest.raises(TilewrightError) as caught:
            kernel.interpret[(1,)](*args, **kwargs)
        lines, first_line = inspect.getsourcelines(kernel.fn)
        file = Path(kernel.fn.__code__.co_filename)
        return relative(str(caught.value), file, range(first_line, first_line + len(lines)))


def relative(text: str, file: Path, lines: range) -> str:
    """`text` with the file's bare name, and lines counted from the first of the kernel's."""
    text = text.replace(str(file), file.name)
    text = re.sub(rf"{re.escape(__file__)}:\d+", "wrong.py:(elsewhere)", text)

    def count(match: re.Match[str]) -> str:
        line = int(match[2])
        return f"{match[1]}+{line - lines.start}" if line in lines else f"{match[1]}(elsewhere)"

    text = re.sub(rf"({re.escape(file.name)}:)(\d+)", count, text)
    return re.sub(r"(\bline )(\d+)", count, text)
