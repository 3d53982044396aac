"""A call with the kernel that runs it, and the launcher that is kept for the next one like it."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType

from tilewright.frontend.bound_call import Call
from tilewright.frontend.parameters import Parameter
from tilewright.frontend.passing import (
    extra_guard,
    has_mutable_constants,
    num_slots,
    parameter_guards,
    stored_paths,
)
from tilewright.runtime.call_shape import CallShape
from tilewright.runtime.driver import FastLaunch
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.kernel import CompiledKernel
from tilewright.support.dataclass import dataclass


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
