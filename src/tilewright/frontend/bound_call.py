"""A call of a kernel, bound and specialised: its key, where it runs, and its launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tilewright.frontend.devices import DevicePlacement, place
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.passing import array_arguments, runtime_addresses
from tilewright.frontend.program import Specialization
from tilewright.runtime.driver import Grid
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.hooks import LAUNCH_HOOKS, LaunchInfo
from tilewright.runtime.kernel import CompiledKernel
from tilewright.support.dataclass import dataclass
from tilewright.support.options import CompileOptions, option_names, runtime_options


@dataclass(frozen=True)
class Call:
    """A call bound and specialised: arguments by name, what the kernel is compiled for, where.

    `extras` are the keywords that are no parameters: compile options, and the stream.
    """

    arguments: Mapping[str, object]
    specialization: Specialization
    options: CompileOptions
    source: KernelSource
    placement: DevicePlacement = DevicePlacement()
    extras: Mapping[str, object] = field(default_factory=dict)


def placed(
    kernel: str, specialization: Specialization, arguments: Mapping[str, object]
) -> DevicePlacement:
    """Where a call runs, with the number of the GPU where its arrays leave it open."""
    arrays = array_arguments(specialization, arguments)
    placement = place(kernel, arrays, runtime_options().target)
    if placement.target == "cpu" or placement.device is not None:
        return placement
    addresses = runtime_addresses(arrays)
    return DevicePlacement(placement.target, load_driver(placement.target).device(addresses))


def compiled_for(call: Call) -> Specialization:
    """What the target of a call compiles it for: all that changes its code there."""
    least = load_driver(call.placement.target).least_divisor
    return call.specialization.with_divisors_from(least)


def launch_watched(
    call: Call, kernel: CompiledKernel, grid: Grid, values: Sequence[object]
) -> None:
    """Launch by the slow path, with the launch hooks around it."""
    target, device = call.placement.target, call.placement.device or 0
    arrays = [value for _, value in array_arguments(call.specialization, call.arguments)]
    stream = load_driver(target).stream(call.extras.get("stream"), arrays, device)
    if LAUNCH_HOOKS.is_empty:
        kernel.launch(grid, values, stream)
        return
    with LAUNCH_HOOKS.around(
        LaunchInfo(kernel.name, grid, target, device, stream, kernel.metadata)
    ):
        kernel.launch(grid, values, stream)


def effective(options: CompileOptions, ignored: frozenset[str]) -> tuple[object, ...]:
    """The values of the options that change something on a target."""
    return tuple(getattr(options, name) for name in option_names() if name not in ignored)


def identity(specialization: Specialization) -> object:
    """What tells two specialisations of a kernel apart, as a key."""
    constants = tuple((path, _hashable(v)) for path, v in specialization.constants.items())
    return (
        specialization.signature,
        constants,
        tuple(specialization.divisibility.items()),
    )


def _hashable(value: object) -> object:
    return (type(value), repr(value) if isinstance(value, float) else value)
