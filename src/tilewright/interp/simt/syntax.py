"""What the parser of LLVM assembly gives: modules, functions, instructions and operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tilewright.interp.simt.types import LlvmType
from tilewright.interp.simt.waited_ring import Awaited
from tilewright.support.dataclass import dataclass
from tilewright.support.source import Span

_SHOWN = 160


@dataclass(frozen=True)
class Site:
    """Where an instruction stands: its line in the LLVM text and in the kernel's source."""

    line: int
    text: str
    source: Span | None = None

    @property
    def in_source(self) -> str:
        """` (file:line)` of the kernel's source, '' where it is not known."""
        return "" if self.source is None else f" ({self.source.file}:{self.source.line})"

    def __str__(self) -> str:
        source = "" if self.source is None else f" (source line {self.source.line})"
        text = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 1] + "…"
        return f"LLVM line {self.line}{source}: {text}"


@dataclass(frozen=True)
class Local:
    """A value of the function: `%name`."""

    type: LlvmType
    name: str


@dataclass(frozen=True)
class Constant:
    """A literal: a number, None for null and zero, a tuple of constants for aggregates."""

    type: LlvmType
    value: object


@dataclass(frozen=True)
class Undefined:
    """`undef` or `poison`."""

    type: LlvmType


@dataclass(frozen=True)
class Global:
    """The address of a global: `@name`."""

    type: LlvmType
    name: str


@dataclass(frozen=True)
class Expression:
    """A constant expression: a cast or an address of something constant."""

    type: LlvmType
    opcode: str
    operands: tuple[Operand, ...]
    element: LlvmType | None = None


Operand = Local | Constant | Undefined | Global | Expression


@dataclass(frozen=True)
class InlineAssembly:
    """The callee of an inline assembly call."""

    template: str
    constraints: str


@dataclass(frozen=True)
class Instruction:
    """One instruction; what each opcode keeps in `detail` is said where it is parsed.

    `type` is that of the result, `labels` are the blocks that it names, `words` its flags,
    predicate or operation.
    """

    opcode: str
    result: str
    type: LlvmType
    operands: tuple[Operand, ...]
    site: Site
    words: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    element: LlvmType | None = None
    indices: tuple[int, ...] = ()
    align: int = 0
    callee: str | InlineAssembly | Operand = ""


@dataclass
class Block:
    """A basic block in the order of the text."""

    label: str
    instructions: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function; `pointee` is set for a struct that is passed by value."""

    type: LlvmType
    name: str
    pointee: LlvmType | None = None


@dataclass
class Function:
    """A function with a body."""

    name: str
    result: LlvmType
    parameters: tuple[Parameter, ...]
    blocks: list[Block] = field(default_factory=list)
    attributes: str = ""


@dataclass(frozen=True)
class GlobalVariable:
    """A global: `space` 3 is shared memory; one without initializer is external or undefined."""

    name: str
    type: LlvmType
    space: int
    initializer: object
    is_external: bool
    is_constant: bool
    align: int


@dataclass
class Module:
    """A parsed module; `rings` are those that waits refer to, by number."""

    functions: dict[str, Function] = field(default_factory=dict)
    globals: dict[str, GlobalVariable] = field(default_factory=dict)
    rings: Mapping[str, Awaited] = field(default_factory=dict)
