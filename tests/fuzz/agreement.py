"""Holding launches of random programs to the interpreter: compiled code leaves the same arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from tests.fuzz.loading import module_at

LAUNCHES = 4


class Launch(Protocol):
    """What a launch is given; `programs`: how many instances it has."""

    @property
    def programs(self) -> int: ...


L = TypeVar("L", bound=Launch)


class Program(Protocol[L]):
    """A random kernel, and random launches of it."""

    name: str

    def text(self) -> str: ...

    def launches(self, count: int) -> list[L]: ...

    def arguments(self, launch: L, seed: int) -> dict[str, np.ndarray | int] | None: ...


def count_agreeing(
    path: Path, text: str, made: Sequence[Program[L]], written: Sequence[str]
) -> int:
    """Compare what launches leave in the arrays `written`, bit for bit; how many there were.

    `text` is the module of the kernels `made`, to be put at `path`. A launch may have no arguments.
    """
    path.write_text(text)
    module = module_at(path)
    checked = 0
    for program in made:
        kernel = getattr(module, program.name)
        for number, launch in enumerate(program.launches(LAUNCHES)):
            expected, found = (program.arguments(launch, number) for _ in range(2))
            if expected is None or found is None:
                continue
            kernel.interpret[(launch.programs,)](**expected)
            kernel[(launch.programs,)](**found)
            checked += 1
            for name in written:
                message = f"{name} of {program.name}, {launch}"
                np.testing.assert_array_equal(found[name], expected[name], message)
    return checked
