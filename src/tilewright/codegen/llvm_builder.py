"""Text of LLVM modules: functions are lists of lines, never objects.

Building text costs 0.15 µs a line; building and printing objects costs 40 times that
(measured: see docs/internals). Nothing here knows about tiles.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import field

from tilewright.support.dataclass import dataclass


@dataclass
class ModuleBuilder:
    """An LLVM module under construction: declarations, globals and functions by name."""

    declarations: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)
    named_metadata: dict[str, str] = field(default_factory=dict)

    def declare(self, name: str, result: str, arguments: str, attributes: str = "") -> str:
        """Declare function `name` once and return `@name`."""
        self.declarations.setdefault(
            name, f"declare {result} @{name}({arguments}) {attributes}".rstrip()
        )
        return f"@{name}"

    def add_global(self, name: str, definition: str) -> str:
        """Define global `name` once (`definition` follows the `=`) and return `@name`."""
        self.globals.setdefault(name, f"@{name} = {definition}")
        return f"@{name}"

    def has_function(self, name: str) -> bool:
        """Whether function `name` has been defined."""
        return name in self.functions

    def add_function(self, name: str, text: str) -> str:
        """Define function `name` once (`text` is the whole `define … { … }`)."""
        self.functions.setdefault(name, text)
        return f"@{name}"

    def add_metadata(self, text: str) -> str:
        """Append one metadata node and return its reference `!N`."""
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"

    def text(self) -> str:
        """The module as LLVM assembly."""
        numbered = [f"!{index} = {node}" for index, node in enumerate(self.metadata)]
        named = [f"!{name} = !{{{nodes}}}" for name, nodes in self.named_metadata.items()]
        parts: Iterable[str] = (
            *self.globals.values(),
            *(line for name, line in self.declarations.items() if name not in self.functions),
            *self.functions.values(),
            *named,
            *numbered,
        )
        return "\n".join(parts) + "\n"


@dataclass
class Prologue:
    """Lines that stand behind the first `start` others of a function, whenever they are added."""

    start: int
    lines: list[str] = field(default_factory=list)


@dataclass
class FunctionBuilder:
    """One LLVM function under construction; values are `%vN`, labels `bbN`.

    A prologue stands at the start of `entry`, whatever block is being written when a line is
    added to it: what depends on the thread alone is computed there once. Code of some threads
    has a prologue of its own, where it begins.
    """

    module: ModuleBuilder
    header: str
    lines: list[str] = field(default_factory=list)
    prologues: list[Prologue] = field(default_factory=lambda: [Prologue(0)])
    counter: int = 0
    location: str = ""
    block: str = "entry"
    # String attributes by name, known as late as the body is, and what follows them.
    attributes: dict[str, str] = field(default_factory=dict)
    attachment: str = ""
    # Where shared memory begins: its symbol, or a value of the prologue.
    shared: str = "@shared"

    def __post_init__(self) -> None:
        self.prologue = self.prologues[0]

    @contextmanager
    def own_prologue(self) -> Generator[None]:
        """Code with a prologue of its own, which stands here and dominates that code alone."""
        outer, self.prologue = self.prologue, Prologue(len(self.lines))
        self.prologues.append(self.prologue)
        try:
            yield
        finally:
            self.prologue = outer

    def emit(self, text: str) -> None:
        """Append one instruction that defines no value."""
        self.lines.append(f"  {text}{self.location}")

    def value(self, text: str) -> str:
        """Append one instruction and return the name of its value."""
        self.counter += 1
        name = f"%v{self.counter}"
        self.lines.append(f"  {name} = {text}{self.location}")
        return name

    def prologue_value(self, text: str) -> str:
        """Append one instruction to the prologue and return the name of its value."""
        self.counter += 1
        name = f"%v{self.counter}"
        self.prologue.lines.append(f"  {name} = {text}{self.location}")
        return name

    def new_value(self) -> str:
        """A fresh name for a value that is used before it is defined, as those around loops."""
        self.counter += 1
        return f"%v{self.counter}"

    def new_label(self) -> str:
        """A fresh label, not yet placed."""
        self.counter += 1
        return f"bb{self.counter}"

    def place(self, label: str) -> None:
        """Start block `label`; the block before must have been terminated."""
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        """End the block with a jump to `label`."""
        self.emit(f"br label %{label}")

    def branch_if(self, condition: str, then: str, otherwise: str) -> None:
        """End the block with a conditional jump on the i1 value `condition`."""
        self.emit(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def text(self) -> str:
        """The function as LLVM assembly; its first block is `entry`."""
        body: list[str] = []
        done = 0
        for prologue in self.prologues:
            body += [*self.lines[done : prologue.start], *prologue.lines]
            done = prologue.start
        text = "\n".join((*body, *self.lines[done:]))
        named = [f'"{name}"="{value}"' for name, value in self.attributes.items()]
        header = " ".join((self.header, *named, *filter(None, (self.attachment,))))
        return f"{header} {{\nentry:\n{text}\n}}"
