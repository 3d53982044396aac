"""A call of a kernel, bound and specialised: its key, its place, its launch, what it passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import FunctionType
from typing import Protocol, cast

from tilewright.frontend.capture import is_jit
from tilewright.frontend.constants import AggregateRef, FunctionRef, HostFunctionRef, exactly
from tilewright.frontend.devices import DevicePlacement, place
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.passing import (
    array_arguments,
    extra_guard,
    has_mutable_constants,
    num_slots,
    parameter_guards,
    runtime_addresses,
    stored_paths,
)
from tilewright.frontend.program import Parameter, Specialization
from tilewright.frontend.source import snapshot
from tilewright.runtime.call_shape import CallShape
from tilewright.runtime.driver import FastLaunch, Grid
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.hooks import LAUNCH_HOOKS, LaunchInfo
from tilewright.runtime.kernel import CompiledKernel
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import UnsupportedError
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
    constants = tuple((path, exactly(v)) for path, v in specialization.constants.items())
    return (
        specialization.signature,
        constants,
        tuple(specialization.divisibility.items()),
    )


@dataclass(frozen=True)
class Prepared:
    """A call with its compiled kernel, and those in its place where it is not made for it.

    The last of `others` is; those before it are not either.
    """

    call: Call
    kernel: CompiledKernel
    others: tuple[CompiledKernel, ...] = ()

    @property
    def launched(self) -> CompiledKernel:
        """The kernel that runs."""
        return (self.kernel, *self.others)[-1]


def launcher_of(
    prepared: Prepared, shape: CallShape, parameters: Sequence[Parameter]
) -> FastLaunch | None:
    """A native launcher for calls of one shape; None where each has to be looked at in Python."""
    call = prepared.call
    stored = stored_paths(prepared.kernel.artifact.metadata)
    driver = load_driver(call.placement.target)
    guards = parameter_guards(parameters, call.specialization, stored, driver.least_divisor)
    if guards is None or call.options.checked:
        return None
    if has_mutable_constants(call.specialization, call.arguments):
        return None
    if call.source.has_guarded_arguments:
        return None
    stream_slot = num_slots(call.specialization)
    extras = [(name, call.extras[name]) for name in shape.extras]
    guards += [
        extra_guard(name, value, driver.ignored_options, stream_slot) for name, value in extras
    ]
    values = [call.arguments[name] for name in shape.names] + [value for _, value in extras]
    others = [other.loaded for other in prepared.others]
    return prepared.kernel.loaded.fast_launcher(guards, values, others)


def live_defaults(function: FunctionType) -> dict[str, object]:
    """Defaults as live objects, read off the Python function, by parameter."""
    code, defaults = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    last = positional[len(positional) - len(defaults) :]
    return {**dict(zip(last, defaults, strict=True)), **(function.__kwdefaults__ or {})}


class _Kernel(Protocol):
    """What `jit` makes, as far as it is asked here."""

    def current_source(self) -> KernelSource:
        """The snapshot, which is kept until what it is of changes."""
        ...


class PassedFunctions:
    """The functions among the arguments of a call: their sources join the kernel's."""

    def __init__(self, kernel: str, source: KernelSource) -> None:
        self._kernel = kernel
        self._source = source
        self._functions = dict(source.functions)
        self._is_guarded = False

    def reference(self, value: object) -> FunctionRef | HostFunctionRef | AggregateRef:
        """The reference to a function or aggregate class that is passed as an argument."""
        passed = _source_of(value)
        self._is_guarded |= passed.is_guarded
        for key, function in passed.functions.items():
            if self._functions.setdefault(key, function) != function:
                raise UnsupportedError(
                    f"{self._kernel}(): two different functions are named {key}",
                    hint="give the functions different names",
                )
        return passed.reference

    def joined(self) -> KernelSource:
        """The kernel's snapshot with what was passed."""
        if len(self._functions) == len(self._source.functions) and not self._is_guarded:
            return self._source
        return replace(
            self._source, functions=self._functions, has_guarded_arguments=self._is_guarded
        )


def _source_of(value: object) -> KernelSource:
    """The snapshot of what is passed, as that is now."""
    if is_jit(value):
        return cast("_Kernel", value).current_source()
    return snapshot(value)
