"""Pipelines: passes in an order that is checked, run on a module.

The one way in which passes run: a compile, `tilewright ir` and the filecheck tests all take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.levels import LEVELS
from tilewright.ir.passes import Pass
from tilewright.machine.model import MachineModel
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InvalidOption
from tilewright.support.options import CompileOptions
from tilewright.targets.target import Target

_FIRST_LEVEL = "T0"
Watch = Callable[[str, ModuleOp], None]
"""Someone who sees the module after a pass, by the name of the pass."""


class PassOrder(InvalidOption):
    """A pass stands where the IR is at another level than the one that it takes."""


@dataclass(frozen=True)
class Pipeline:
    """Passes in an order that their levels and their `after` allow, checked when it is made.

    `levels` are those before, between and behind the passes.

    *Raises*: `PassOrder`.
    """

    passes: tuple[Pass, ...]
    levels: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        level = self.passes[0].requires if self.passes else _FIRST_LEVEL
        levels = [level]
        for item in self.passes:
            _check_level(item, level)
            level = item.produces
            levels.append(level)
        for index, item in enumerate(self.passes):
            _check_after(item, self.passes[index + 1 :])
        object.__setattr__(self, "levels", tuple(levels))

    def apply(self, module: ModuleOp, watch: Watch | None = None) -> tuple[object, ...]:
        """Run every pass on the module; what the passes have to say."""
        reports: list[object] = []
        for name, report in self.steps(module):
            reports.append(report)
            if watch is not None:
                watch(name, module)
        return tuple(reports)

    def steps(self, module: ModuleOp) -> Iterator[tuple[str, object]]:
        """Run one pass at a time: its name and what it has to say."""
        for item in self.passes:
            yield item.name, item.apply(module)


def tile_pipeline(target: Target, machine: MachineModel, options: CompileOptions) -> Pipeline:
    """The passes of a target on T0."""
    return Pipeline(target.tile_passes(machine, options))


def schedule_pipeline(target: Target, machine: MachineModel, options: CompileOptions) -> Pipeline:
    """The passes of a target from T0 to its own level."""
    return Pipeline(target.schedule(machine, options))


def full_pipeline(target: Target, machine: MachineModel, options: CompileOptions) -> Pipeline:
    """All passes of a target, from what the frontend writes to what is emitted."""
    return Pipeline((*target.tile_passes(machine, options), *target.schedule(machine, options)))


def _check_level(item: Pass, level: str) -> None:
    if item.requires != level and level not in LEVELS[item.requires].includes:
        raise PassOrder(
            f"pass `{item.name}` takes {item.requires}, and the IR is at {level} there",
            hint="the order of the passes must follow the levels that they produce",
        )


def _check_after(item: Pass, later: tuple[Pass, ...]) -> None:
    late = next((other.name for other in later if other.name in item.after), None)
    if late is not None:
        raise PassOrder(
            f"pass `{item.name}` stands before `{late}`, whose result it reads",
            hint=f"put `{late}` in front of `{item.name}`",
        )
