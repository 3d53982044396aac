"""Launches a kernel as the GPU would run it, in the simulator, and in the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.interp.simt.statistics import Report
from tilewright.ir.op import Array
from tilewright.jit import JITFunction
from tilewright.machine.gpus import SM_90A
from tilewright.support.options import option_names
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.target import load_target

MACHINE = SM_90A
SHARED_BYTES = 200 << 10
Grid = tuple[int, ...]


def llvm_text(kernel: JITFunction, arguments: Sequence[object], **options: object) -> str:
    """The LLVM text of a kernel for Hopper."""
    return _lowered(kernel, arguments, options)[0]


def _lowered(
    kernel: JITFunction, arguments: Sequence[object], options: Mapping[str, object]
) -> tuple[str, list[Argument]]:
    """The LLVM text of a kernel, and the arguments that it takes of a launch's."""
    call = kernel.specialize_call(tuple(arguments), dict(options))
    fields = {name: getattr(call.options, name) for name in option_names()}
    source = call.source
    request = CompileRequest(
        source.functions, source.kernel, call.specialization, fields, "nvidia", MACHINE
    )
    target = load_target("nvidia")
    module = to_tiles(request, target, None)
    scheduled = to_schedule(request, target, module, None)
    scheduled.module.verify()
    text = target.emit(scheduled, request.machine, request.compile_options)
    paths = [path for path, _ in call.specialization.runtime_leaves()]
    return text, [number_or_array(call.arguments[str(path[0])]) for path in paths]


def number_or_array(value: object) -> Argument:
    """An argument as the simulator takes it."""
    assert isinstance(value, np.ndarray | int | float)
    return value


def ptx_text(kernel: JITFunction, arguments: Sequence[object], **options: object) -> str:
    """The PTX of a kernel."""
    return to_ptx(llvm_text(kernel, arguments, **options), MACHINE)


def simulated(
    kernel: JITFunction, grid: Grid, arguments: Sequence[Argument], **options: object
) -> tuple[list[Argument], Report]:
    """The arguments as a launch on the simulator leaves them, and what it counted."""
    copies = [copied(argument) for argument in arguments]
    text, passed = _lowered(kernel, copies, options)
    num_warps = int(str(options.get("num_warps", 4)))
    x, y, z = (*grid, 1, 1)[:3]
    name = kernel.__name__
    report = simulate(
        text, name, (x, y, z), 32 * num_warps, passed, SHARED_BYTES, checks_global_order=True
    )
    return copies, report


def interpreted(
    kernel: JITFunction, grid: Grid, arguments: Sequence[Argument], **options: object
) -> list[Argument]:
    """The arguments as the reference interpreter leaves them."""
    copies = [copied(argument) for argument in arguments]
    kernel.interpret[grid](*copies, **options)
    return copies


def copied(argument: Argument) -> Argument:
    """A copy of an array; a number itself."""
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def check(
    kernel: JITFunction,
    grid: Grid,
    *arguments: Argument,
    rtol: float = 0.0,
    atol: float = 0.0,
    **options: object,
) -> Report:
    """Assert that the simulated launch leaves what the interpreter leaves."""
    found, report = simulated(kernel, grid, arguments, **options)
    expected = interpreted(kernel, grid, arguments, **options)
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if isinstance(ours, np.ndarray):
            assert isinstance(theirs, np.ndarray)
            check_array(ours, theirs, rtol, atol, f"argument {index}")
    return report


def check_array(ours: Array, theirs: Array, rtol: float, atol: float, what: str) -> None:
    """Assert that two arrays agree, exactly where both tolerances are 0."""
    if ours.dtype.kind == "V" or rtol or atol:
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    if rtol or atol:
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=what)
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=what)


def random_array(shape: Sequence[int], dtype: str, seed: int = 0, span: int = 100) -> Array:
    """Numbers between -span and span (unsigned: from 0), the same in every run."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    low = 0 if kind.kind in "ub" else -span
    if kind.kind in "iu":
        return generator.integers(low, span, tuple(shape)).astype(kind)
    if kind.kind == "b":
        return generator.integers(0, 2, tuple(shape)).astype(kind)
    return (generator.random(tuple(shape)) * 2 * span - span).astype(kind)
