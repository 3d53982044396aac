"""The protocol between the runtime and a target: load a binary, launch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tilewright.runtime.artifact import Artifact

Grid = tuple[int, int, int]
FastLaunch = Callable[..., object]


class LoadedKernel(Protocol):
    """A kernel in executable memory."""

    def launch(self, grid: Grid, arguments: Sequence[object]) -> None:
        """Run every program of `grid` on the runtime arguments, in signature order."""
        ...

    def fast_launcher(
        self, parameters: Sequence[ParameterGuard], arguments: Sequence[object]
    ) -> FastLaunch | None:
        """A callable `f(x, y, z, *arguments)` that launches if every argument is as before.

        It returns `slow_path` of the driver, having run nothing, when one is not. None where
        the target or one of the arguments has no such path.
        """
        ...


class ParameterGuard(Protocol):
    """What the specialisation says about one parameter of the kernel."""

    @property
    def type(self) -> str:
        """The type in the signature, `constexpr` for constants."""
        ...

    @property
    def is_aligned(self) -> bool | None:
        """Whether the value is a multiple of 16 (None: it does not matter)."""
        ...

    @property
    def is_annotated(self) -> bool:
        """Whether the author, not the value, chose the type."""
        ...

    @property
    def slot(self) -> int | None:
        """The index among the runtime arguments; None for constants."""
        ...


class Driver(Protocol):
    """One per target and process."""

    slow_path: object
    # Compile options that change nothing on this target; they are no part of a request.
    ignored_options: frozenset[str]

    def machine(self) -> Mapping[str, int | float | str | bool | None]:
        """The features of the machine that decide what is compiled, as data."""
        ...

    def load(self, artifact: Artifact) -> LoadedKernel:
        """Bring a compiled kernel into executable memory."""
        ...
