"""Running a case as the program of an NVIDIA GPU: its LLVM text, simulated on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from tests.corpus.case import Array, Case
from tests.corpus.run import Memory, guarded
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.arrays import descriptor_slots
from tilewright.frontend.passing import value_at
from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.runtime.grid import check_grid
from tilewright.support.options import option_names
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.target import Scheduled, load_target

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


def lower_for_gpu(case: Case, **options: object) -> Threads:
    """Lower a case for sm_90a, bound to guarded memory of its own."""
    memory = guarded(case.values())
    given = {**memory.values, **_NO_FUSION, **case.options, **options}
    call = case.kernel.specialize_call((), given)
    fields = {name: getattr(call.options, name) for name in option_names()}
    machine = named_machine("sm_90a")
    source = case.kernel.source
    request = CompileRequest(
        source.functions, source.kernel, call.specialization, fields, "nvidia", machine
    )
    target = load_target("nvidia")
    module = to_tiles(request, target, None)
    scheduled = to_schedule(request, target, module, None)
    text = target.emit(scheduled, machine, fields)
    return Threads(request, scheduled, text, memory, tuple(_arguments(call)))


def _arguments(call: object) -> list[Argument]:
    values: list[Argument] = []
    for path, type_ in call.specialization.runtime_leaves():  # type: ignore[attr-defined]  # a call
        value = value_at(path, call.arguments)  # type: ignore[attr-defined]  # a call
        if type_.startswith("tensordesc"):
            _, *rest = descriptor_slots(value)
            values += [value.base, *rest]  # type: ignore[attr-defined]  # a descriptor
        else:
            values.append(value)  # type: ignore[arg-type]  # an array or a number
    return values


def run_threads(case: Case, **options: object) -> dict[str, Array]:
    """What the arrays hold after the simulator ran the case; checks the memory around them."""
    threads = lower_for_gpu(case, **options)
    grid = check_grid(case.name, case.grid, threads.memory.values)
    shared = int(str(threads.scheduled.metadata["shared_bytes"]))
    name = threads.request.name
    simulate(threads.text, name, grid, threads.num_threads, threads.arguments, shared)
    threads.memory.require_guards(case.name)
    return threads.memory.arrays()
