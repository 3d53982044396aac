"""The registry of user functions: what `tilewright.language` offers and who implements it.

A user function is declared beside its op with `@surface(...)`; its first parameter is the
`Builder`, the rest is the public signature. `language/_ops.py` is generated from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tilewright.support.dataclass import dataclass

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True)
class Surface:
    """One public function: `key` is its path below `tilewright.language`.

    `member` functions are also methods of a tile; `operator` names the Python operator that
    means the function.
    """

    key: str
    function: Callable[..., object]
    member: bool

    @property
    def module(self) -> str:
        """The module below `tilewright.language`, '' for the package itself."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The function's public name."""
        return self.key.rpartition(".")[2]


SURFACE: dict[str, Surface] = {}
MEMBERS: dict[str, Surface] = {}


def surface(
    name: str | None = None, *, member: bool = False, module: str = ""
) -> Callable[[Function], Function]:
    """Declare the decorated function as public, under its own name unless `name` is given."""

    def declare(function: Function) -> Function:
        public = name or function.__name__.rstrip("_")
        key = f"{module}.{public}" if module else public
        if key in SURFACE:
            raise AssertionError(f"second user function {key}")
        entry = Surface(key, function, member)
        SURFACE[key] = entry
        if member:
            MEMBERS.setdefault(public, entry)
        return function

    return declare
