"""Pipelines of passes by name: what `tilewright ir` and the filecheck tests run.

A pass is a dataclass in a module of `tilewright.passes`, or in a `tile_passes` module of a
target, with a `name`, an `apply(module)` and the levels that it requires and produces (T0
unless it says otherwise). Its fields are its options. `schedule` is the lowering of a target to
its own level.

    split-carried-pointers schedule{target=cpu,vector_bytes=32}
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from types import ModuleType
from typing import Protocol, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tilewright.passes
from tilewright.ir.levels import LEVELS, verify_level
from tilewright.ir.text import parse_module, print_module
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.machine.gpus import GPUS, SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.dialects import make_dialects, tile_context
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import InvalidOption
from tilewright.support.options import CompileOptions
from tilewright.targets.target import TARGETS, load_target

OptionValue = bool | int | float | str
_FIRST_LEVEL = "T0"
_ITEM = re.compile(r"\s*(?P<name>[\w-]+)(?:\{(?P<options>[^}]*)\})?\s*")
_OPTION = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>[^,\s]+)\s*,?")
_NOT_OPTIONS = frozenset(("name", "requires", "produces"))


class UnknownPass(InvalidOption):
    """A pipeline names a pass that does not exist."""


class PassOrder(InvalidOption):
    """A pass stands where the IR is at another level than the one that it takes."""


class Pass(Protocol):
    """A transformation of a module in place."""

    @property
    def name(self) -> str:
        """The name in pipelines."""
        ...

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the module."""
        ...


@dataclass(frozen=True)
class Schedule:
    """The lowering of a target from T0 to its own level, for a machine that needs not be there.

    `machine` names a GPU; without one the target is the CPU, with the sizes that are given and
    LLVM's `features`, `+` in between.
    """

    target: str = "cpu"
    machine: str = SM_90A.name
    num_warps: int = 4
    vector_bytes: int = MADE_UP_CPU.vector_bytes
    num_registers: int = MADE_UP_CPU.num_registers
    l3_bytes: int = MADE_UP_CPU.l3_bytes
    features: str = "avx2+fma"
    name: str = "schedule"
    requires: str = _FIRST_LEVEL

    @property
    def produces(self) -> str:
        """The target's level."""
        return load_target(self.target).level

    def apply(self, module: ModuleOp) -> None:
        """Lower the module."""
        options = CompileOptions(num_warps=self.num_warps)
        load_target(self.target).schedule(module, self._model(), options)

    def _model(self) -> MachineModel:
        if self.target != "cpu":
            if self.machine not in GPUS:
                raise InvalidOption(
                    f"there is no machine {self.machine!r}",
                    hint=f"the machines are {', '.join(GPUS)}",
                )
            return GPUS[self.machine]
        return replace(
            MADE_UP_CPU,
            vector_bytes=self.vector_bytes,
            num_registers=self.num_registers,
            l3_bytes=self.l3_bytes,
            features=tuple(f"+{name}" for name in self.features.split("+") if name),
        )


@functools.cache
def pass_classes() -> dict[str, type]:
    """Every pass by its name, in alphabetical order."""
    found = {Schedule.name: cast("type", Schedule)}
    for module in _pass_modules():
        for cls in vars(module).values():
            if isinstance(cls, type) and cls.__module__ == module.__name__ and _is_pass(cls):
                name = str(vars(cls)["name"])
                assert name not in found, f"two passes are called {name}"
                found[name] = cls
    return dict(sorted(found.items()))


def _is_pass(cls: type) -> bool:
    return (
        dataclasses.is_dataclass(cls)
        and callable(getattr(cls, "apply", None))
        and isinstance(vars(cls).get("name"), str)
    )


def _pass_modules() -> Iterator[ModuleType]:
    for info in pkgutil.iter_modules(tilewright.passes.__path__):
        yield importlib.import_module(f"tilewright.passes.{info.name}")
    for target in TARGETS:
        yield importlib.import_module(f"tilewright.targets.{target}.tile_passes")


@dataclass(frozen=True)
class Pipeline:
    """Passes in an order that their levels allow, which is checked when it is made."""

    passes: tuple[Pass, ...]
    levels: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        level = _requires(self.passes[0]) if self.passes else _FIRST_LEVEL
        levels = [level]
        for item in self.passes:
            if _requires(item) != level:
                raise PassOrder(
                    f"pass `{item.name}` takes {_requires(item)}, and the IR is at {level} there",
                    hint="the order of the passes must follow the levels that they produce",
                )
            level = _produces(item)
            levels.append(level)
        object.__setattr__(self, "levels", tuple(levels))

    def apply(self, module: ModuleOp, verify_each: bool = False) -> None:
        """Run every pass on the module, with `verify_each` checking each level in between.

        Raises: `InternalError` when a pass breaks the contract of its level.
        """
        for item, level in zip(self.passes, self.levels[1:], strict=True):
            item.apply(module)
            if verify_each:
                ops = tuple(op for name in TARGETS for op in load_target(name).ops)
                verify_level(module, LEVELS[level].extended(*ops))


def _requires(item: Pass) -> str:
    return str(getattr(item, "requires", _FIRST_LEVEL))


def _produces(item: Pass) -> str:
    return str(getattr(item, "produces", _FIRST_LEVEL))


def parse_pipeline(text: str) -> Pipeline:
    """The pipeline that `text` names: passes separated by spaces, options in braces.

    Raises: `UnknownPass`, `InvalidOption` for an option that the pass does not have,
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
        passes.append(make_pass(match["name"], match["options"] or ""))
        position = match.end()
    return Pipeline(tuple(passes))


def make_pass(name: str, options: str = "") -> Pass:
    """The pass `name` with `options` as `a=1,b=x`. Raises: `UnknownPass`, `InvalidOption`."""
    classes = pass_classes()
    if name not in classes:
        raise UnknownPass(f"there is no pass `{name}`", hint=f"the passes are {', '.join(classes)}")
    cls = classes[name]
    known = [f.name for f in dataclasses.fields(cls) if f.name not in _NOT_OPTIONS]
    values: dict[str, OptionValue] = {}
    for option in _OPTION.finditer(options):
        if option["name"] not in known:
            raise InvalidOption(
                f"pass `{name}` has no option `{option['name']}`",
                hint=f"its options are {', '.join(known)}" if known else "it has none",
            )
        values[option["name"]] = _value(option["value"])
    return cast("Pass", cls(**values))


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


def run_passes(module: ModuleOp, passes: Sequence[Pass]) -> None:
    """Run passes on a module in place and verify what comes out. Raises: `PassOrder`."""
    Pipeline(tuple(passes)).apply(module)
    module.verify()


def run_passes_on_text(text: str, passes: str) -> str:
    """Parse one module, apply the pipeline `passes`, verify and print it in generic form.

    Raises: `MalformedText`, and what `parse_pipeline` and the passes raise.
    """
    module = parse_module(text, full_context())
    run_passes(module, parse_pipeline(passes).passes)
    return print_module(module)
