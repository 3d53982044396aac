"""The symbol of a compiled kernel, where `@jit(repr=…)` names it after what it is compiled for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tilewright.frontend.kernel_source import KernelSource
from tilewright.support.dataclass import replace

from ..compiler.source import ASTSource

Repr = Callable[["SpecializationProxy"], str]


class SpecializationProxy(NamedTuple):
    """What a `repr` names a kernel after: its constants and types by parameter."""

    constants: dict[str, object]
    signature: dict[str, object]


def proxy_of(source: ASTSource) -> SpecializationProxy:
    """The constants and types that a kernel is compiled for; a constant of a tuple by its path."""
    names = list(source.signature)
    constants = {
        ".".join((names[path[0]], *map(str, path[1:]))): value
        for path, value in source.constants.items()
    }
    return SpecializationProxy(constants, dict(source.signature))


def named_source(name: str, source: KernelSource) -> KernelSource:
    """The snapshot with another name for the kernel; what no symbol may hold becomes `_`."""
    kernel = source.functions[source.kernel]
    symbol = re.sub(r"[^0-9A-Za-z_$]", "_", name)
    symbol = symbol if symbol and not symbol[0].isdigit() else f"_{symbol}"
    functions = {**source.functions, source.kernel: replace(kernel, name=symbol)}
    return KernelSource(functions, source.kernel, source.guards)
