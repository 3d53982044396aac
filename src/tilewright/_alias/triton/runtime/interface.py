"""What launchers of other packages build on: the base of what can be launched, and parameters."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Generic, TypeVar, cast

from tilewright.frontend.program import Parameter
from tilewright.frontend.scope import MISSING, cell_value
from tilewright.runtime.grid import GridLike

from .tensors import MockTensor

T = TypeVar("T")
_NO_TYPES = ("constexpr", "const")


class JITCallable:
    """What kernels call: jit functions, and functions of constants."""

    fn: Callable[..., object]

    def get_capture_scope(self) -> dict[str, object]:
        """The names that the function sees: those of its module, and of functions around it.

        Where both have a name it is that of the function around, as in Python. Tools that write
        kernels give it to the functions that they make.
        """
        fn = cast("FunctionType", self.fn)
        cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
        around = {name: cell_value(cell) for name, cell in cells}
        return {**fn.__globals__, **{n: v for n, v in around.items() if v is not MISSING}}


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
