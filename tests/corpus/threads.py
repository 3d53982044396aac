"""Running a case as the program of an NVIDIA GPU: its LLVM text, simulated on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tests.corpus.case import Array, Case, arrays_of
from tests.corpus.once import once
from tests.corpus.run import Memory, guarded
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.arrays import descriptor_slots
from tilewright.frontend.passing import runtime_values, value_at
from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.jit import Call
from tilewright.runtime.grid import check_grid
from tilewright.runtime.launch_numbers import fits
from tilewright.support.options import option_names
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.simulated import cluster_size, started_grid, tensor_maps
from tilewright.targets.target import Scheduled, load_target

Annotate = Callable[[ModuleOp], None]
_NO_FUSION = {"enable_fp_fusion": False}


@dataclass(frozen=True)
class Threads:
    """A case lowered for sm_90a: the scheduled module and the text of one thread."""

    request: CompileRequest
    scheduled: Scheduled
    text: str
    memory: Memory
    arguments: tuple[Argument, ...]

    @property
    def num_threads(self) -> int:
        """The threads of a program."""
        return 32 * int(str(self.scheduled.metadata["num_warps"]))


def gpu_request(case: Case, **options: object) -> CompileRequest:
    """The compile request of a case for sm_90a."""
    memory = guarded(case.values())
    return _request(case, case.kernel.specialize_call((), _given(case, memory, options)))


def lower_for_gpu(case: Case, annotate: Annotate | None = None, **options: object) -> Threads:
    """Lower a case for sm_90a, bound to guarded memory of its own.

    `annotate` sees the module at T0, before anything is decided. As at a launch, a kernel that is
    not made for the case is compiled without its guards.
    """
    memory = guarded(case.values())
    call = case.kernel.specialize_call((), _given(case, memory, options))
    request = _request(case, call)
    target = load_target("nvidia")
    module = to_tiles(request, target, None)
    if annotate is not None:
        annotate(module)
    scheduled = to_schedule(request, target, module, None)
    values = runtime_values(call.specialization, call.arguments)
    grid = check_grid(case.name, case.grid, memory.values)
    if not fits(scheduled.metadata, grid, values):
        return lower_for_gpu(case, annotate, **{**options, "bulk_access": "never"})
    text = target.emit(scheduled, request.machine, request.compile_options)
    arrays = {array.ctypes.data: array for array in arrays_of(memory.values).values()}
    maps = tensor_maps(scheduled.metadata, values, arrays)
    return Threads(request, scheduled, text, memory, (*_arguments(call), *maps))


def _given(case: Case, memory: Memory, options: Mapping[str, object]) -> dict[str, object]:
    return {**memory.values, **_NO_FUSION, **case.options, **options}


def _request(case: Case, call: Call) -> CompileRequest:
    fields = {name: getattr(call.options, name) for name in option_names()}
    source = case.kernel.source
    machine = named_machine("sm_90a")
    return CompileRequest(
        source.functions, source.kernel, call.specialization, fields, "nvidia", machine
    )


def _arguments(call: Call) -> list[Argument]:
    values: list[Argument] = []
    for path, type_ in call.specialization.runtime_leaves():
        value = value_at(path, call.arguments)
        if type_.startswith("tensordesc"):
            _, *rest = descriptor_slots(value)
            values += [value.base, *rest]  # type: ignore[attr-defined]  # a descriptor
        else:
            values.append(value)  # type: ignore[arg-type]  # an array or a number
    return values


def run_threads(
    case: Case, annotate: Annotate | None = None, **options: object
) -> dict[str, Array]:
    """What the arrays hold after the simulator ran the case.

    The memory around them is checked, and the order of what threads of a program access.
    """
    return run_lowered(case, lower_for_gpu(case, annotate, **options))


@once
def run_plain_threads(case: Case) -> dict[str, Array]:
    """The same for a case as it is, which roles and schedules are held to: it runs once."""
    return run_threads(case)


def run_lowered(case: Case, threads: Threads) -> dict[str, Array]:
    """What the arrays hold after the simulator ran what was lowered of a case."""
    grid = check_grid(case.name, case.grid, threads.memory.values)
    programs, extents = started_grid(threads.scheduled.metadata, grid)
    shared = int(str(threads.scheduled.metadata["shared_bytes"]))
    name = str(threads.scheduled.metadata["symbol"])
    simulate(
        threads.text,
        name,
        programs,
        threads.num_threads,
        [*threads.arguments, *extents],
        shared,
        cluster=cluster_size(threads.scheduled.metadata),
        checks_global_order=True,
    )
    threads.memory.require_guards(case.name)
    return threads.memory.arrays()
