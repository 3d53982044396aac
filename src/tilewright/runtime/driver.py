"""The protocol between the runtime and a target: load a binary, launch it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tilewright.runtime.artifact import Artifact
from tilewright.support.errors import KernelFault
from tilewright.support.options import CompileOptions

if TYPE_CHECKING:
    from tilewright.machine.model import MachineModel

Grid = tuple[int, int, int]
FastLaunch = Callable[..., object]


class LoadedKernel(Protocol):
    """A kernel in executable memory."""

    def launch(self, grid: Grid, arguments: Sequence[object], stream: int | None = None) -> None:
        """Run every program of `grid` on the runtime arguments, in signature order.

        `stream` is what the driver's `stream` gave for this launch.
        """
        ...

    def fast_launcher(
        self,
        parameters: Sequence[ParameterGuard],
        arguments: Sequence[object],
        others: Sequence[LoadedKernel] = (),
    ) -> FastLaunch | None:
        """A callable `f(x, y, z, *arguments)` that launches if every argument is as before.

        It returns `slow_path` of the driver, having run nothing, when one is not. None where
        the target or one of the arguments has no such path. A parameter whose slot comes after
        the runtime arguments is the stream of the launch. Where the guards of this kernel's
        artifact do not hold, the first of `others` whose guards do is launched
        (`runtime/launch_numbers.py`).
        """
        ...


class IntegerClass(Protocol):
    """Integers that the specialisation does not tell apart."""

    @property
    def divisor(self) -> int:
        """A power of two of which each is a multiple."""
        ...

    @property
    def larger(self) -> int:
        """A power of two of which none is a multiple; 0 where there is none."""
        ...

    @property
    def takes_one(self) -> bool:
        """Whether 1 may be among them: it is not where that is a constant."""
        ...


class ParameterGuard(Protocol):
    """What the specialisation says about one parameter of the kernel."""

    @property
    def type(self) -> str:
        """The type in the signature, `constexpr` for constants, `ignored` for what is not read."""
        ...

    @property
    def is_aligned(self) -> bool | None:
        """Whether an address is a multiple of 16 (None: it does not matter)."""
        ...

    @property
    def integer_class(self) -> IntegerClass | None:
        """Which integers the kernel was compiled for (None: all of the type)."""
        ...

    @property
    def is_annotated(self) -> bool:
        """Whether the author, not the value, chose the type."""
        ...

    @property
    def is_stored(self) -> bool:
        """Whether the kernel stores through the argument."""
        ...

    @property
    def slot(self) -> int | None:
        """The index among the runtime arguments; None for constants."""
        ...


class Driver(Protocol):
    """One per target and process."""

    slow_path: object
    # What the kernels of this target are shown as: the keys of `CompiledKernel.asm`.
    stages: tuple[str, ...]
    # Compile options that change nothing on this target; they are no part of a request.
    ignored_options: frozenset[str]
    # The least divisor of an integer that a launch tells its kernel.
    least_divisor: int

    def machine(self, device: int | None = None) -> MachineModel:
        """The features of a device (None: the current one) that decide what is compiled."""
        ...

    def check_options(self, options: CompileOptions) -> None:
        """Refuse what no kernel of this target can be compiled with.

        Raises: UnsupportedError, or a CompileError where no machine could.
        """
        ...

    def device(self, addresses: Sequence[int]) -> int:
        """The device of arrays that do not say it themselves; the current one without arrays."""
        ...

    def stream(self, given: object, arrays: Sequence[object], device: int) -> int | None:
        """The stream that a launch goes to: the one given, or (None) the arrays' current one."""
        ...

    def pending_fault(self) -> KernelFault | None:
        """What a kernel that stopped the device left to say; None where nothing did."""
        ...

    def load(self, artifact: Artifact, device: int | None = None) -> LoadedKernel:
        """Bring a compiled kernel into executable memory of a device (None: the current one)."""
        ...
