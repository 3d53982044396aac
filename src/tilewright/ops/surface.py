"""The registry of user functions: what `tilewright.language` offers and who implements it.

A user function is declared beside its op with `@surface(...)`; its first parameter is the
`Builder`, the rest is the public signature. `language/_ops.py` is generated from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tilewright.language.stubs import EXTENSIONS
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import DuplicateRegistration
from tilewright.support.source import definition_span

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True)
class Surface:
    """One public function: `key` is its path below `tilewright.language`.

    `member` functions are also methods of a tile. `example` is a use, in the kernel that
    `tools/language_examples.py` describes.
    """

    key: str
    function: Callable[..., object]
    member: bool
    example: str = ""

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
    name: str | None = None, *, member: bool = False, module: str = "", example: str = ""
) -> Callable[[Function], Function]:
    """Declare the decorated function as public, under its own name unless `name` is given.

    `module` is its place below `tilewright.language`, or the extension that it belongs to.
    Raises: DuplicateRegistration.
    """

    def declare(function: Function) -> Function:
        public = name or function.__name__.rstrip("_")
        key = f"{module}.{public}" if module else public
        if key in SURFACE:
            raise _second(key, f"there is a function `{key}` already", SURFACE, function)
        entry = Surface(key, function, member, example)
        SURFACE[key] = entry
        if member and public in MEMBERS and module in EXTENSIONS:
            raise _second(public, f"tiles have a method `{public}` already", MEMBERS, function)
        if member:
            MEMBERS.setdefault(public, entry)
        return function

    return declare


def _second(
    key: str, summary: str, table: dict[str, Surface], function: object
) -> DuplicateRegistration:
    first = definition_span(table[key].function)
    return DuplicateRegistration(
        summary,
        types={} if first is None else {"first": first.position()},
        span=definition_span(function),
    )
