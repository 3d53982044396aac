"""Instruments around a compile: what is checked, shown and kept; none changes the code.

`compile_watched` is `compile_request` with the instruments that the environment asks for, and
with the two that are always there: the breadcrumb (`reproducer.py`), and the rule that any
error which is not one of the catalogue is a defect of ours and leaves a reproducer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from tilewright.compiler.compile import Observer, StageResult, compile_request
from tilewright.compiler.pipeline import full_pipeline
from tilewright.compiler.reproducer import (
    Reproducer,
    ReproducerStore,
    current_versions,
    defect,
    reproducer_hint,
    tell_of_orphans,
)
from tilewright.compiler.request import CompileRequest
from tilewright.ir.levels import T0, Level
from tilewright.ir.text import print_module
from tilewright.ir.verify_level import verify_level
from tilewright.ops.function import find_kernel
from tilewright.runtime.artifact import Artifact
from tilewright.schedule.protocol.around import run_around
from tilewright.support.dataclass import dataclass
from tilewright.support.deep_calls import with_room
from tilewright.support.errors import InternalError, TilewrightError
from tilewright.support.options import DebugOptions, debug_options, runtime_options
from tilewright.targets.target import load_target

ROOM_FRAMES = 850
"""What the walks over the deepest nest take, at six frames a level."""


def compile_watched(
    request: CompileRequest,
    key: str = "",
    keeps_reproducer: bool = True,
    watch: Observer | None = None,
) -> Artifact:
    """Compile a request under the instruments that the environment asks for.

    `keeps_reproducer` False leaves no file of a failure behind; `watch` sees each stage as well.

    Raises: what `compile_request` raises; `InternalError` with a reproducer for anything that
    is no error of the catalogue.
    """
    debug, progress = debug_options(), Progress()
    store = ReproducerStore(reproducer_directory() if keeps_reproducer else None)
    tell_of_orphans(store.directory)
    timing = StageTimes() if debug.time_passes else None
    observe = Observers(
        (
            progress,
            *((watch,) if watch else ()),
            *_asked_for(debug, request, key),
            *((timing,) if timing else ()),
        )
    )
    try:
        with store.breadcrumb(request, key):
            # Deep nests take their share of the stack, wherever the caller stands on its own.
            artifact = with_room(lambda: compile_request(request, key, observe), ROOM_FRAMES)
    except TilewrightError as error:
        if isinstance(error, InternalError):
            _keep(store, request, key, error, progress.last)
        raise
    except Exception as error:  # whatever else leaves the compiler is a defect of ours
        internal = defect(error, f"stage `{progress.last}`")
        _keep(store, request, key, internal, progress.last)
        raise internal from error
    _report(request, artifact, timing, debug)
    return artifact


def reproducer_directory() -> Path | None:
    """Where reproducers are kept: in the cache directory, or nowhere without one."""
    cache = runtime_options().cache_dir
    return None if cache is None else cache / "reproducers"


def _asked_for(debug: DebugOptions, request: CompileRequest, key: str) -> list[Observer]:
    observers: list[Observer] = []
    if debug.verify_each:
        observers.append(verifier_of(request))
    if debug.dump_ir is not None:
        name = f"{request.name}-{key[:12]}" if key else request.name
        observers.append(StageDump(debug.dump_ir / name))
    return observers


def _keep(
    store: ReproducerStore, request: CompileRequest, key: str, error: InternalError, stage: str
) -> None:
    """Write the reproducer, and let the error name the command that runs it."""
    reproducer = Reproducer(request, stage, error.summary, current_versions())
    path = store.write(reproducer, key)
    if path is not None:
        error.hint = reproducer_hint(path)


def _report(
    request: CompileRequest, artifact: Artifact, timing: StageTimes | None, debug: DebugOptions
) -> None:
    if timing is not None:
        print(timing.to_text(request.name), file=sys.stderr)
    remarks = artifact.metadata.get("remarks")
    if debug.print_remarks and isinstance(remarks, list):
        for remark in remarks:
            print(f"remark: {request.name}: {remark}", file=sys.stderr)


@dataclass(frozen=True)
class Observers:
    """Several observers as one."""

    observers: Sequence[Observer]

    def __call__(self, stage: str, result: StageResult) -> None:
        """Hand the stage to each."""
        for observer in self.observers:
            observer(stage, result)


@dataclass
class Progress:
    """The last stage that came to its end."""

    last: str = "start"

    def __call__(self, stage: str, result: StageResult) -> None:
        """Note the stage."""
        self.last = stage


@dataclass
class StageTimes:
    """The time that each stage took, in the order of the stages."""

    seconds: dict[str, float] = field(default_factory=dict)
    _previous: float = field(default_factory=time.perf_counter)

    def __call__(self, stage: str, result: StageResult) -> None:
        """Add the time since the stage before."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._previous
        self._previous = now

    def to_text(self, title: str) -> str:
        """A table in milliseconds with the total."""
        total = sum(self.seconds.values())
        width = max(len(name) for name in (*self.seconds, "total"))
        rows = [*self.seconds.items(), ("total", total)]
        lines = (
            f"  {name.ljust(width)}  {1e3 * seconds:9.2f} ms  {100 * seconds / (total or 1):5.1f} %"
            for name, seconds in rows
        )
        return "\n".join((f"compile times of {title}", *lines))


@dataclass
class StageDump:
    """Each stage as a numbered file of a directory."""

    directory: Path
    count: int = 0

    def __call__(self, stage: str, result: StageResult) -> None:
        """Write the stage. A directory that cannot be written raises: `InternalError`."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for name, data in _files(stage, result):
                path = self.directory / f"{self.count:02d}-{name}"
                path.write_bytes(data)
        except OSError as error:
            raise TilewrightError(
                f"TILEWRIGHT_DUMP_IR: {self.directory} cannot be written: {error.strerror}",
                hint="name a directory that you may write to, or unset the variable",
            ) from error
        self.count += 1


def _files(stage: str, result: StageResult) -> list[tuple[str, bytes]]:
    if isinstance(result, str):
        return [(f"{stage}.ll", result.encode())]
    if not isinstance(result, Mapping):
        return [(f"{stage}.mlir", print_module(result).encode())]
    return [(name if name == stage else f"{stage}-{name}", data) for name, data in result.items()]


_RUN_BEHIND = "check-protocol"
"""The pass behind which roles are run with scalars alone: they have all that they wait for."""


def verifier_of(request: CompileRequest) -> Verifier:
    """The check of every stage of a request: after each pass, of the level that it leaves."""
    target = load_target(request.target)
    pipeline = full_pipeline(target, request.machine, request.compile_options)
    produced = {item.name: target.contract(item.produces) for item in pipeline.passes}
    return Verifier({"frontend": T0, **produced})


@dataclass(frozen=True)
class Verifier:
    """A check of each IR stage against the contract of its level, and of roles by running them."""

    levels: Mapping[str, Level]

    def __call__(self, stage: str, result: StageResult) -> None:
        """Verify the module. Raises: `InternalError` that names the stage and the op."""
        if isinstance(result, str | Mapping):
            return
        try:
            verify_level(result, self.levels[stage])
            if stage == _RUN_BEHIND:
                run_around(find_kernel(result))
        except InternalError as error:
            raise InternalError(
                f"after stage `{stage}`: {error.summary}", span=error.span, chain=error.chain
            ) from error
