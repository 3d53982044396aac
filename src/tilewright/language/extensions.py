"""Extensions: packages that add functions to the language, with the ops and rules behind them.

    extras = tilewright.extension("tile_extras", ops=".ops", cpu=".cpu", nvidia=".nvidia")

    @extras.function
    def running_maximum(x, axis=0): ...

The package itself is light, as programs import it to launch: its parts, which need the compiler,
are imported when a kernel is compiled. The part `ops` has the ops and the user functions, each
other part the rules for the target that it is named for. Every extension that a process has
imported is part of its compile requests: a worker imports it too, and a change of its sources
compiles kernels anew.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from importlib.util import resolve_name
from types import ModuleType
from typing import NoReturn, TypeVar

from tilewright.language.stubs import EXTENSIONS
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    DuplicateRegistration,
    HostCall,
    InvalidExtension,
    TilewrightError,
    UnknownFacet,
)
from tilewright.support.source import Span, calling_span

Function = TypeVar("Function", bound=Callable[..., object])
PARTS = ("ops", "rules", "cpu", "nvidia", "mlir")
"""What an extension may have: ops, rules for every target, and rules for one."""


@dataclass(frozen=True)
class Extension:
    """A package that adds to the language: its name, and the modules of its parts."""

    name: str
    parts: Mapping[str, str]

    def function(self, stub: Function) -> Function:
        """Make a function of the language of `stub`: its name, signature and documentation.

        The part `ops` has its meaning, as `@surface(module=<the extension's name>)`.
        """
        key = f"{self.name}.{stub.__name__}"

        @functools.wraps(stub)
        def only_in_kernels(*_: object, **__: object) -> NoReturn:
            raise HostCall(f"{key} is called outside of a kernel")

        only_in_kernels.__dict__["__tilewright_op__"] = key
        return only_in_kernels  # type: ignore[return-value]  # it takes the stub's place


def extension(name: str, **parts: str) -> Extension:
    """Declare a package that adds to the language; `parts` are modules, `.ops` is relative.

    Raises: UnknownFacet for a part that there is not; DuplicateRegistration for a name that
    another extension has.
    """
    here = calling_span()
    for part in parts:
        if part not in PARTS:
            raise _unknown_part(name, part, here)
    made = Extension(name, {part: resolve_name(module, name) for part, module in parts.items()})
    known = EXTENSIONS.setdefault(name, made)
    if known != made:
        raise DuplicateRegistration(f"there is an extension `{name}` already", span=here)
    return made


def _unknown_part(name: str, part: str, here: Span) -> TilewrightError:
    return UnknownFacet(
        f"extension `{name}`: there is no part `{part}`",
        hint=f"an extension has {', '.join(PARTS[:-1])} and {PARTS[-1]}",
        span=here,
    )


def import_extensions(names: tuple[str, ...]) -> None:
    """Have the extensions of a request, in a process that has not imported them.

    Raises: InvalidExtension for a package that is not here, or declares nothing.
    """
    for name in names:
        if name not in EXTENSIONS:
            _import(name, name)
        if name not in EXTENSIONS:
            raise InvalidExtension(f"`{name}` declares no extension of that name")


def load_part(part: str) -> list[tuple[str, ModuleType]]:
    """Import a part of every extension that has it: the extensions' names and the modules.

    Raises: InvalidExtension for a part that is not there.
    """
    extensions = [found for found in EXTENSIONS.values() if isinstance(found, Extension)]
    return [(e.name, _import(e.name, e.parts[part])) for e in extensions if part in e.parts]


def _import(name: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise InvalidExtension(
            f"extension `{name}`: there is no module `{module}`",
            hint="extension(…) names each part by its module; the package must be importable "
            "where kernels are compiled",
        ) from error
