"""Functions that are passed to a kernel as arguments: their sources join the kernel's."""

from __future__ import annotations

from typing import Protocol, cast

from tilewright.frontend.capture import JIT_MARKER
from tilewright.frontend.constants import AggregateRef, FunctionRef, HostFunctionRef
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.source import snapshot
from tilewright.support.dataclass import replace
from tilewright.support.errors import UnsupportedError


class _Kernel(Protocol):
    """What `jit` makes, as far as it is asked here."""

    @property
    def source(self) -> KernelSource:
        """The snapshot, which is kept."""
        ...


class PassedFunctions:
    """The functions among the arguments of a call: their sources join the kernel's."""

    def __init__(self, kernel: str, source: KernelSource) -> None:
        self._kernel = kernel
        self._source = source
        self._functions = dict(source.functions)

    def reference(self, value: object) -> FunctionRef | HostFunctionRef | AggregateRef:
        """The reference to a function or aggregate class that is passed as an argument."""
        passed = _source_of(value)
        for key, function in passed.functions.items():
            if self._functions.setdefault(key, function) != function:
                raise UnsupportedError(
                    f"{self._kernel}(): two different functions are named {key}",
                    hint="give the functions different names",
                )
        return passed.reference

    def joined(self) -> KernelSource:
        """The kernel's snapshot with what was passed."""
        if len(self._functions) == len(self._source.functions):
            return self._source
        return replace(self._source, functions=self._functions)


def _source_of(value: object) -> KernelSource:
    """The snapshot of what is passed."""
    if getattr(value, JIT_MARKER, False):
        return cast("_Kernel", value).source
    return snapshot(value)
