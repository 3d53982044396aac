"""What launchers of other packages build on: the base of what can be launched, and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from tilewright.frontend.program import Parameter
from tilewright.runtime.grid import GridLike

from .tensors import MockTensor

T = TypeVar("T")
_NO_TYPES = ("constexpr", "const")


class JITCallable:
    """What kernels call: jit functions, and functions of constants."""


class KernelInterface(Generic[T]):
    """What can be launched over a grid; a base class for launchers of other packages."""

    run: T

    def warmup(self, *args: object, grid: GridLike, **kwargs: object) -> object:
        """Compile for arguments like these without launching."""
        wrapped = [MockTensor.wrap_dtype(value) for value in args]
        run = cast("Callable[..., object]", self.run)
        return run(*wrapped, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: GridLike) -> T:
        """The launcher over `grid`."""

        def launch(*args: object, **kwargs: object) -> object:
            run = cast("Callable[..., object]", self.run)
            return run(*args, grid=grid, warmup=False, **kwargs)

        return cast("T", launch)


class KernelParam:
    """One parameter of a kernel, as launchers of other packages ask about it."""

    def __init__(self, num: int, parameter: Parameter, default: object) -> None:
        self.num = num
        self.name = parameter.name
        self.annotation = parameter.annotation
        self.annotation_type = "" if parameter.annotation in _NO_TYPES else parameter.annotation
        self.is_constexpr = parameter.is_constexpr
        self.is_const = parameter.annotation == "const" or parameter.annotation.startswith("*k")
        self.has_default = parameter.has_default
        self.default = default
        self.do_not_specialize = not parameter.specialize
        self.do_not_specialize_on_alignment = not parameter.specialize_alignment
