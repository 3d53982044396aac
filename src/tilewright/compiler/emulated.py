"""Launches that this machine emulates: on the reference interpreter, on simulated GPU threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Protocol

from tilewright.compiler.interpreted import InterpretedLaunch, run_interpreted
from tilewright.compiler.simulated import DEFAULT_MACHINE, Simulation, run_simulated
from tilewright.frontend.bound_call import Call
from tilewright.frontend.passing import value_at
from tilewright.runtime.driver import Grid
from tilewright.runtime.grid import GridLike, check_grid
from tilewright.runtime.launch_site import placing_at_launch
from tilewright.support.dataclass import dataclass
from tilewright.support.environment import SIMULATE
from tilewright.support.errors import InvalidOption, UnsupportedError
from tilewright.support.options import option_names
from tilewright.targets.nvidia.host import named_machine


class EmulatedFunction(Protocol):
    """A kernel, as far as emulation asks."""

    fn: FunctionType
    simulated_machine: str

    def specialize_call(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Call:
        """Bind the arguments of a call, and say what the kernel must be compiled for."""
        ...


@dataclass(frozen=True)
class Interpreted:
    """`kernel.interpret`: launches on the reference interpreter."""

    function: EmulatedFunction

    def __getitem__(self, grid: GridLike) -> Callable[..., None]:
        def launch(
            *args: object, reachable: Sequence[object] | None = None, **kwargs: object
        ) -> None:
            run_interpreted(*_bound(self.function, grid, args, kwargs, reachable))

        return launch


@dataclass(frozen=True)
class Simulated:
    """`kernel.simulate`: launches on the simulator of a GPU's threads."""

    function: EmulatedFunction

    def __getitem__(self, grid: GridLike) -> Callable[..., Simulation]:
        def launch(
            *args: object,
            machine: str = "",
            seed: int | None = None,
            reachable: Sequence[object] | None = None,
            **kwargs: object,
        ) -> Simulation:
            chosen = _machine(machine, self.function.simulated_machine)
            bound = _bound(self.function, grid, args, kwargs, reachable)
            with placing_at_launch():
                return run_simulated(*bound, chosen, seed)

        return launch

    def alone(self, grid: GridLike) -> Callable[..., None]:
        """A launch in place of one that gives a compiled kernel, which there is none of."""
        simulated = self[grid]

        def launch(*args: object, **kwargs: object) -> None:
            simulated(*args, **kwargs)

        return launch


def _machine(said: str, of_environment: str) -> str:
    """The machine to simulate. *Raises*: InvalidOption where there is none of the name."""
    chosen = said or of_environment or DEFAULT_MACHINE
    with placing_at_launch():
        try:
            named_machine(chosen)
        except UnsupportedError as error:
            option = "`machine`" if said else f"environment variable {SIMULATE.name}"
            summary = f"{option} is {chosen!r}: {error.summary}"
            raise InvalidOption(summary, argument="machine", hint=error.hint) from None
    return chosen


def _bound(
    function: EmulatedFunction,
    grid: GridLike,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    reachable: Sequence[object] | None,
) -> tuple[InterpretedLaunch, Grid]:
    """A launch on arrays of the host, bound and specialised, with its grid."""
    with placing_at_launch():
        call = function.specialize_call(args, kwargs)
        extents = check_grid(function.fn.__name__, grid, call.arguments)
    leaves = call.specialization.runtime_leaves()
    values = [(type_, value_at(path, call.arguments)) for path, type_ in leaves]
    options = {name: getattr(call.options, name) for name in option_names()}
    launch = InterpretedLaunch(call.source, call.specialization, values, options, reachable)
    return launch, extents
