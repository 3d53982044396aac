"""Launching a kernel on the reference interpreter instead of a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.compiler.reachable import Named, reachable_arrays
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.arrays import array_facts, bounds_of, descriptor_slots
from tilewright.frontend.kernel_source import KernelSource
from tilewright.frontend.lower import lower_kernel
from tilewright.frontend.program import Specialization
from tilewright.interp.evaluate import Argument, run_kernel
from tilewright.interp.memory import BufferArgument
from tilewright.interp.values import dtype_of
from tilewright.ops.builder import ir_type
from tilewright.ops.elementwise.ir import IntToPtrOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import ArgumentNotSupported


@dataclass(frozen=True)
class InterpretedLaunch:
    """A launch bound and specialised: what the interpreter needs.

    `reachable` are further arrays, for a kernel that reads pointers from memory.
    """

    source: KernelSource
    specialization: Specialization
    values: Sequence[tuple[str, object]]
    options: Mapping[str, int | float | str | bool | None]
    reachable: Sequence[object] | None = None

    def reached(self) -> tuple[Named, ...]:
        """The arrays that pointers in memory may lead to; see `reachable.py`."""
        return reachable_arrays([value for _, value in self.values], self.reachable)


def run_interpreted(launch: InterpretedLaunch, grid: tuple[int, int, int]) -> None:
    """Interpret every program of `grid`. Raises: a KernelFault for undefined behaviour."""
    options = {**launch.options, "interpret": True, "debug": True}
    if options.get("sanitize_overflow") is None:
        options["sanitize_overflow"] = bool(launch.options.get("debug"))
    request = CompileRequest(
        launch.source.functions, launch.source.kernel, launch.specialization, options, "interpreter"
    )
    module = lower_kernel(request)
    arguments: list[Argument] = []
    for type_, value in launch.values:
        arguments.extend(_arguments(type_, value))
    reads_pointers = any(isinstance(op, IntToPtrOp) for op in module.walk())
    reached = [_buffer(value) for _, value in launch.reached()] if reads_pointers else []
    # Of arrays that nobody named bounds are known where a caller holds them.
    reaches_foreign = launch.reachable is None
    run_kernel(module, arguments, grid, reachable=reached, reaches_foreign=reaches_foreign)


def _arguments(type_: str, value: object) -> list[Argument]:
    if type_.startswith("tensordesc"):
        base, *rest = descriptor_slots(value)
        return [_buffer(getattr(value, "base", base)), *rest]
    if type_.startswith("*"):
        return [_buffer(value)]
    if isinstance(value, bool | int | float | np.generic):
        return [value.item() if isinstance(value, np.generic) else value]
    raise ArgumentNotSupported(f"the interpreter takes no argument {value!r}")


def _buffer(value: object) -> np.ndarray | BufferArgument:
    """Memory of the caller: a NumPy array as it is, anything else by address and extent."""
    if isinstance(value, np.ndarray):
        return value
    facts = array_facts(value)
    if facts is None:
        raise ArgumentNotSupported(f"the interpreter cannot read {type(value).__name__}")
    dtype = dtype_of(ir_type(facts.element))
    return BufferArgument(
        facts.address, _extent_bytes(value, facts.address), dtype, facts.is_writable, value
    )


def _extent_bytes(value: object, address: int) -> int:
    size = getattr(value, "nbytes", None)
    if isinstance(size, int) and not hasattr(value, "untyped_storage"):
        return size
    return bounds_of(value)[1] - address
