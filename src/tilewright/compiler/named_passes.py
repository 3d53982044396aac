"""Pipelines as text: what the filecheck tests write, and a pass by its name.

    split-carried-pointers assign-layouts{num_warps=8} schedule{target=cpu,vector_bytes=32}

An option whose value has spaces or commas stands in quotes.

Passes are those in the modules of `tilewright.passes` and those that a target's manifest loads.
The options of a pass are its fields. One that takes a machine has the option `machine`, the name
of one, and the fields of the machine. `tiles` stands for all passes of a target on T0, `schedule`
for those that lead from there to its own level.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import importlib
import pkgutil
import re
from collections.abc import Mapping
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tilewright.passes
from tilewright.compiler.pipeline import Pipeline
from tilewright.ir.levels import LEVELS, Level
from tilewright.ir.passes import Pass
from tilewright.ir.text import parse_module, print_module
from tilewright.ir.text_places import line_of, locate
from tilewright.ir.verify_level import verify_level
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.machine.gpus import GPUS, SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.dialects import make_dialects, tile_context
from tilewright.passes.require_rules import RequireRules
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import InternalError, InvalidOption, MalformedText
from tilewright.support.options import CompileOptions
from tilewright.targets.target import TARGETS, load_target

OptionValue = bool | int | float | str
MACHINES: Mapping[str, MachineModel] = MappingProxyType({**GPUS, "cpu": MADE_UP_CPU})
"""The machines that passes can be told to work for, by name."""
_MACHINE = "machine"
_ITEM = re.compile(r"\s*(?P<name>[\w-]+)(?:\{(?P<options>[^}]*)\})?\s*")
_OPTION = re.compile(r'\s*(?P<name>\w+)\s*=\s*(?P<value>"[^"]*"|[^,\s]+)\s*,?')


class UnknownPass(InvalidOption):
    """A pipeline names a pass that does not exist."""


@dataclass(frozen=True)
class Group:
    """Passes of a target for a machine under one name: `tiles` or `schedule`."""

    target: str = "cpu"
    machine: MachineModel | None = None
    num_warps: int = 4

    def passes(self, name: str) -> tuple[Pass, ...]:
        """The passes, in order."""
        machine = self.machine or (MADE_UP_CPU if self.target == "cpu" else SM_90A)
        options, target = CompileOptions(num_warps=self.num_warps), load_target(self.target)
        if name == "tiles":
            return target.tile_passes(machine, options)
        # On text nobody else asks whether the tile passes have lowered what no schedule sees.
        return (RequireRules(self.target), *target.schedule(machine, options))


GROUPS = ("schedule", "tiles")


@functools.cache
def pass_classes() -> dict[str, type[Pass]]:
    """Every pass by its name, in alphabetical order."""
    for info in pkgutil.iter_modules(tilewright.passes.__path__):
        importlib.import_module(f"tilewright.passes.{info.name}")
    for target in TARGETS:
        load_target(target)
    found: dict[str, type[Pass]] = {}
    own = (cls for cls in Pass.__subclasses__() if cls.__module__.startswith("tilewright."))
    for cls in own:
        known = found.setdefault(cls.name, cls)
        assert known is cls, f"two passes are called {cls.name}"
    return dict(sorted(found.items()))


def parse_pipeline(text: str) -> Pipeline:
    """The pipeline that `text` names: passes separated by spaces, options in braces.

    *Raises*: `UnknownPass`, `InvalidOption` for an option that the pass does not have,
    `PassOrder`.
    """
    passes: list[Pass] = []
    position = 0
    while position < len(text.rstrip()):
        match = _ITEM.match(text, position)
        if match is None or match.end() == position:
            raise UnknownPass(
                f"a pipeline cannot be read from {text[position:]!r}",
                hint="write passes as `name` or `name{option=value,option=value}`",
            )
        name, options = match["name"], match["options"] or ""
        passes += _group(name, options) if name in GROUPS else (make_pass(name, options),)
        position = match.end()
    return Pipeline(tuple(passes))


def make_pass(name: str, options: str = "") -> Pass:
    """The pass `name` with `options` as `a=1,b=x`. *Raises*: `UnknownPass`, `InvalidOption`."""
    classes = pass_classes()
    if name not in classes:
        known = (*classes, *GROUPS)
        close = difflib.get_close_matches(name, known, 1)
        hint = f"do you mean `{close[0]}`?" if close else f"the passes are {', '.join(known)}"
        raise UnknownPass(f"there is no pass `{name}`", hint=hint)
    cls = classes[name]
    default = next((f.default for f in dataclasses.fields(cls) if f.name == _MACHINE), None)
    machine = default if isinstance(default, MachineModel) else MADE_UP_CPU
    return cls(**_values(name, cls, machine, options))


def _group(name: str, options: str) -> tuple[Pass, ...]:
    is_gpu = "target=nvidia" in options.replace(" ", "")
    machine = SM_90A if is_gpu else MADE_UP_CPU
    return Group(**_values(name, Group, machine, options)).passes(name)  # pyright: ignore[reportArgumentType]


def _values(name: str, cls: type, machine: MachineModel, options: str) -> dict[str, object]:
    """The fields of a pass, read from its options; what is no field of it, the machine has."""
    known = [f.name for f in dataclasses.fields(cls)]
    of_machine = [f.name for f in dataclasses.fields(MachineModel)] if _MACHINE in known else []
    values: dict[str, object] = {}
    changes: dict[str, object] = {}
    for option in _OPTION.finditer(options):
        key, text = option["name"], option["value"]
        if key == _MACHINE and key in known:
            machine = _machine(text)
        elif key in known:
            values[key] = _value(text)
        elif key in of_machine:
            changes[key] = _features(text) if key == "features" else _value(text)
        else:
            raise InvalidOption(
                f"pass `{name}` has no option `{key}`",
                hint=f"its options are {', '.join(known)}" if known else "it has none",
            )
    return {**values, _MACHINE: replace(machine, **changes)} if _MACHINE in known else values


def _machine(name: str) -> MachineModel:
    if name not in MACHINES:
        raise InvalidOption(
            f"there is no machine {name!r}", hint=f"the machines are {', '.join(MACHINES)}"
        )
    return MACHINES[name]


def _features(text: str) -> tuple[str, ...]:
    """LLVM's features, written with `+` in between."""
    return tuple(f"+{name}" for name in text.split("+") if name)


def _value(text: str) -> OptionValue:
    if text in ("true", "false"):
        return text == "true"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, bool | int | float | str) else text


@functools.cache
def full_context() -> Context:
    """A context that knows the ops of every level and target."""
    targets = [load_target(name) for name in TARGETS]
    dialects = [d for target in targets for d in make_dialects(target.ops, target.attributes)]
    return tile_context(tuple(dialects))


def run_passes_on_text(text: str, passes: str, *, name: str = "<text>") -> str:
    """Parse one module, apply the pipeline `passes`, and print it in generic form.

    Ops without a location get that of their line. The module is checked against the contract of
    the level that the first pass requires, and after every pass against that of its level.

    *Raises*: `MalformedText`, and what `parse_pipeline` and the passes raise.
    """
    pipeline = parse_pipeline(passes)
    module = parse_module(text, full_context(), name=name)
    locate(module, text, name)
    if pipeline.passes:
        _check_text(module, pipeline.levels[0], text)
    produced = {item.name: item.produces for item in pipeline.passes}
    pipeline.apply(module, lambda name, module: verify_level(module, _contract(produced[name])))
    return print_module(module)


def _check_text(module: ModuleOp, level: str, text: str) -> None:
    """Check what a user wrote. *Raises*: MalformedText that says what the first pass takes."""
    try:
        verify_level(module, _contract(level))
    except InternalError as error:
        raise MalformedText(
            error.summary,
            hint=f"the first pass takes {level}; the passes that lead there go before it",
            span=error.span,
            source=None if error.span is None else line_of(text, error.span),
        ) from error


def _contract(level: str) -> Level:
    """What a module of any target may hold at a level."""
    return LEVELS[level].extended(*(op for name in TARGETS for op in load_target(name).ops))
