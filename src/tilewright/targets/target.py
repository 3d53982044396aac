"""What a target is to the rest of the compiler: a manifest, and a driver loaded on demand."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tilewright.ir.levels import LEVELS, T0, Level
from tilewright.ir.passes import Pass
from tilewright.machine.model import MachineModel
from tilewright.support.collection import count_as_old
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError
from tilewright.support.options import CompileOptions

if TYPE_CHECKING:
    from tilewright.interp.simt.statistics import Report
    from tilewright.interp.simt.timeline import Timeline


@dataclass(frozen=True)
class Scheduled:
    """A module at the target's scheduled level, with what the driver must know of it.

    `report` is the target's own account of its decisions, for people; it is not kept.
    """

    module: ModuleOp
    metadata: Mapping[str, object]
    remarks: tuple[str, ...] = ()
    report: object = None


Passes = Callable[[MachineModel, CompileOptions], tuple[Pass, ...]]
"""The passes of a target for a machine, in order."""

Schedules = Callable[[ModuleOp, MachineModel, CompileOptions], tuple[Mapping[str, object], ...]]
"""The options of each schedule of a T0 module that is worth timing."""

Reports = Sequence[object]
"""What the passes of a compile decided, for people, in order."""

Report_ = TypeVar("Report_")


def report_of(reports: Reports, kind: type[Report_]) -> Report_:
    """The report of one kind among those of the passes."""
    return next(report for report in reports if isinstance(report, kind))


@dataclass(frozen=True)
class Form:
    """Another form of a kernel: `options` that differ from those asked for.

    `remark` says to a person that this one is taken, and why. `is_right` says whether what was
    made of the options is that form.
    """

    options: Mapping[str, object]
    remark: str
    is_right: Callable[[Scheduled], bool]


class OtherForms(Protocol):
    """The forms that a target may give a kernel in place of one that its assembler makes slow."""

    def __call__(
        self, scheduled: Scheduled, options: CompileOptions, problem: str
    ) -> Sequence[Form]:
        """The forms, the fastest first; `problem` is what the assembler says."""
        ...


def no_other_forms(scheduled: Scheduled, options: CompileOptions, problem: str) -> Sequence[Form]:
    """Those of a target that gives kernels one form."""
    return ()


class SimulateLike(Protocol):
    """A launch of emitted text without the device, every access checked."""

    def __call__(
        self,
        scheduled: Scheduled,
        text: str,
        kernel: str,
        grid: tuple[int, int, int],
        values: Sequence[tuple[str, object]],
        seed: int | None = None,
        timeline: Timeline | None = None,
        reached: Sequence[tuple[str, object]] = (),
    ) -> Report:
        """Run the programs of `grid` on runtime arguments with their types, in place.

        `reached` names the arrays that pointers in memory lead to.
        """
        ...


@dataclass(frozen=True)
class Target:
    """A target's manifest, read top to bottom.

    `tile_passes` run on T0; `schedule` lowers T0 to the scheduled level; `describe` says what
    the driver must know of the module there; `emit` writes its text for the assembler;
    `assemble` turns text into the sections of the artifact. `level` names the scheduled level in
    `ir/levels.py`; `ops` and `attributes` are those that only the target has.
    `assembly` is what its assembly language is called as a stage, `text` what it emits.
    `views` show the sections of an artifact as text, by the name of the stage (`sass`).
    `tile_ops` are those of its `ops` that its tile passes leave in T0.
    `simulate` runs emitted text on this machine, where the target has a simulator.
    `enumerate_schedules` says among which schedules a tuner chooses, where there are several.
    `problem_of` says what the assembler found slow in an artifact's sections ('' for nothing), and
    `other_forms` what to try then.
    """

    name: str
    tile_passes: Passes
    schedule: Passes
    describe: Callable[[ModuleOp, CompileOptions, Reports], Scheduled]
    emit: Callable[[Scheduled, MachineModel, CompileOptions], str]
    assemble: Callable[[str, MachineModel, CompileOptions], dict[str, bytes]]
    disassemble: Callable[[str, MachineModel, CompileOptions], str]
    level: str
    ops: tuple[type[Operation], ...]
    attributes: tuple[type[Attribute], ...] = ()
    assembly: str = "asm"
    text: str = "llir"
    views: Mapping[str, Callable[[Mapping[str, bytes]], str]] = field(default_factory=dict)
    tile_ops: tuple[type[Operation], ...] = ()
    simulate: SimulateLike | None = None
    enumerate_schedules: Schedules | None = None
    problem_of: Callable[[Mapping[str, bytes]], str] | None = None
    other_forms: OtherForms = no_other_forms

    def contract(self, level: str) -> Level:
        """What a module of this target may hold at a level."""
        return _extended(level, self.tile_ops if level == T0.name else self.ops)


@cache
def _extended(level: str, ops: tuple[type[Operation], ...]) -> Level:
    return LEVELS[level].extended(*ops)


TARGETS = ("cpu", "nvidia", "mlir")


def load_target(name: str) -> Target:
    """The manifest of target `name`. Raises: UnsupportedError for an unknown target."""
    if name not in TARGETS:
        raise UnsupportedError(
            f"there is no target {name!r}", hint=f"the targets are {', '.join(TARGETS)}"
        )
    module = f"tilewright.targets.{name}.manifest"
    is_loaded = module in sys.modules
    target = importlib.import_module(module).TARGET
    if not is_loaded:
        count_as_old()
    return target
