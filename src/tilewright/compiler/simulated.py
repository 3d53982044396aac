"""Launching a kernel on the simulator of a GPU's threads: its emitted text, every access checked.

    request ─ compile (no assembler) ─► text of one thread ─ interp/simt ─► arrays, Simulation

What the simulator finds is a `KernelFault` at the line of the kernel: an access out of bounds, a
race, a missing fence, a read of shared memory that nobody wrote, a deadlock.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from tilewright.compiler.build import make_request
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.interpreted import InterpretedLaunch
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.devices import DevicePlacement
from tilewright.interp.simt.statistics import Report
from tilewright.interp.simt.timeline import Timeline
from tilewright.machine.model import MachineModel
from tilewright.runtime.launch_numbers import fits, plainer_kernels
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.simulated import launch_words
from tilewright.targets.target import Scheduled, load_target

DEFAULT_MACHINE = "sm_90a"
_TARGET = "nvidia"
# By definition: the instruction that makes a pointer of what memory holds.
_READS_POINTERS = "inttoptr"


@dataclass(frozen=True)
class Simulation:
    """A simulated launch of `kernel` for the GPU `machine`, and what was counted in it.

    `timeline` is that of its first program, where the collector draws them. `remarks` are those of
    the kernel that ran, which is a plainer one where the arguments do not allow the first choice.
    """

    kernel: str
    machine: str
    grid: tuple[int, int, int]
    report: Report
    timeline: Timeline | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Collector:
    """Where simulated launches are noted, and the seed of those that name none."""

    simulations: list[Simulation]
    seed: int | None
    draws: bool


_COLLECTOR: ContextVar[_Collector | None] = ContextVar("simulations", default=None)


@contextmanager
def collected_simulations(
    seed: int | None = None, draws: bool = False
) -> Generator[list[Simulation]]:
    """A list of the launches that end well inside the block, in order; `seed` is for them all.

    With `draws` each has a timeline.
    """
    collector = _Collector([], seed, draws)
    token = _COLLECTOR.set(collector)
    try:
        yield collector.simulations
    finally:
        _COLLECTOR.reset(token)


def _scheduled(
    launch: InterpretedLaunch, options: CompileOptions, machine: MachineModel
) -> tuple[CompileRequest, Scheduled]:
    """The kernel of a launch as it is emitted."""
    target, where = load_target(_TARGET), DevicePlacement(_TARGET)
    request = make_request(launch.source, launch.specialization, options, where, machine)
    return request, to_schedule(request, target, to_tiles(request, target, None), None)


def run_simulated(
    launch: InterpretedLaunch, grid: tuple[int, int, int], machine: str, seed: int | None = None
) -> Simulation:
    """Compile a launch for the GPU `machine` and simulate every program of `grid`.

    With a `seed` the warps of a program take turns at random. *Raises*: a `KernelFault` for
    what the kernel does wrong; `UnsupportedError` for an unknown machine and for what the
    simulator does not know.
    """
    features = named_machine(machine)
    target = load_target(_TARGET)
    if target.simulate is None:
        raise UnsupportedError(f"kernels for {machine} are not simulated")
    options = CompileOptions().replaced(launch.options)
    request, scheduled = _scheduled(launch, options, features)
    words = launch_words(launch.values)
    if not fits(scheduled.metadata, grid, words):

        def made(
            plainer: CompileOptions,
        ) -> tuple[tuple[CompileRequest, Scheduled], Mapping[str, object]]:
            found = _scheduled(launch, plainer, features)
            return found, found[1].metadata

        *_, (request, scheduled) = plainer_kernels(options, scheduled.metadata, grid, words, made)
    text = target.emit(scheduled, request.machine, request.compile_options)
    collector = _COLLECTOR.get()
    if collector is not None and seed is None:
        seed = collector.seed
    timeline = Timeline() if collector is not None and collector.draws else None
    reached = launch.reached() if _READS_POINTERS in text else ()
    report = target.simulate(
        scheduled, text, request.name, grid, launch.values, seed, timeline, reached
    )
    simulation = Simulation(request.name, machine, grid, report, timeline, scheduled.remarks)
    if collector is not None:
        collector.simulations.append(simulation)
    return simulation
