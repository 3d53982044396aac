"""Launches kernels with tensor descriptors in the simulator, as the driver would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.instruments import verifier_of
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.passing import runtime_values
from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.interp.simt.statistics import Report
from tilewright.ir.op import Array
from tilewright.jit import Call, JITFunction
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.schedule.check_ordering import check_ordering
from tilewright.support.dataclass import dataclass
from tilewright.support.options import option_names
from tilewright.targets.nvidia.simulated import started_grid, tensor_maps
from tilewright.targets.target import Scheduled, load_target

MACHINE = SM_90A


@dataclass(frozen=True)
class Lowered:
    """A kernel compiled for a call: its text, its module, and what goes with them."""

    call: Call
    scheduled: Scheduled
    text: str


def lowered(
    kernel: JITFunction, arguments: Sequence[object], options: Mapping[str, object]
) -> Lowered:
    """A kernel compiled for Hopper, each step and its order of accesses checked."""
    call = kernel.specialize_call(tuple(arguments), dict(options))
    fields = {name: getattr(call.options, name) for name in option_names()}
    source = call.source
    request = CompileRequest(
        source.functions, source.kernel, call.specialization, fields, "nvidia", MACHINE
    )
    target = load_target("nvidia")
    verify = verifier_of(request)
    scheduled = to_schedule(request, target, to_tiles(request, target, verify), verify)
    check_ordering(find_kernel(scheduled.module))
    return Lowered(
        call, scheduled, target.emit(scheduled, request.machine, request.compile_options)
    )


def simulated(
    kernel: JITFunction, grid: tuple[int, ...], arguments: Sequence[object], **options: object
) -> tuple[list[object], Report]:
    """The arguments as a launch on the simulator leaves them, and what it counted."""
    copies = copied(arguments)
    program = lowered(kernel, copies, options)
    arrays = {array.ctypes.data: array for array in map(array_of, copies) if array is not None}
    values = runtime_values(program.call.specialization, program.call.arguments)
    passed: list[Argument] = [arrays.get(v, v) if isinstance(v, int) else v for v in values]
    passed += tensor_maps(program.scheduled.metadata, values, arrays)
    shared = int(str(program.scheduled.metadata["shared_bytes"]))
    threads = 32 * int(str(program.scheduled.metadata["num_warps"]))
    x, y, z = (*grid, 1, 1)[:3]
    programs, extents = started_grid(program.scheduled.metadata, (x, y, z))
    everything = [*passed, *extents]
    report = simulate(program.text, kernel.__name__, programs, threads, everything, shared)
    return copies, report


def interpreted(
    kernel: JITFunction, grid: tuple[int, ...], arguments: Sequence[object], **options: object
) -> list[object]:
    """The arguments as the reference interpreter leaves them."""
    copies = copied(arguments)
    kernel.interpret[grid](*copies, **options)
    return copies


def array_of(argument: object) -> Array | None:
    """The array of an argument, that of a descriptor included."""
    base = argument.base if isinstance(argument, TensorDescriptor) else argument
    return base if isinstance(base, np.ndarray) else None


def copied(arguments: Sequence[object]) -> list[object]:
    """Copies of arrays and descriptors, aligned as copy engines want them; the rest itself."""
    result: list[object] = []
    for argument in arguments:
        array = array_of(argument)
        if array is None:
            result.append(argument)
            continue
        place = aligned_like(array)
        if isinstance(argument, TensorDescriptor):
            a = argument
            result.append(TensorDescriptor(place, a.shape, a.strides, a.block_shape, a.padding))
        else:
            result.append(place)
    return result


def aligned_like(array: Array) -> Array:
    """A copy of an array at a multiple of 128 bytes."""
    size = array.nbytes
    raw = np.zeros(size + 128, np.uint8)
    start = -raw.ctypes.data % 128
    place = raw[start : start + size].view(array.dtype).reshape(array.shape)
    place[...] = array
    return place


def check(
    kernel: JITFunction,
    grid: tuple[int, ...],
    *arguments: object,
    tolerance: float = 0.0,
    **options: object,
) -> Report:
    """Assert that the simulated launch leaves what the interpreter leaves."""
    found, report = simulated(kernel, grid, arguments, **options)
    expected = interpreted(kernel, grid, arguments, **options)
    pairs = zip(map(array_of, found), map(array_of, expected), strict=True)
    for index, (ours, theirs) in enumerate(pairs):
        if ours is None or theirs is None:
            continue
        wide = [a.astype(np.float64) if a.dtype.kind in "fV" else a for a in (ours, theirs)]
        if tolerance:
            np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance, err_msg=str(index))
        else:
            np.testing.assert_array_equal(*wide, err_msg=f"argument {index}")
    return report


def count(kernel: object, arguments: Sequence[object], *kinds: type, **options: object) -> int:
    """How many ops of some kinds a kernel has at T2."""
    function = find_kernel(lowered(kernel, arguments, options).scheduled.module)
    return sum(isinstance(op, kinds) for op in function.walk())
