"""The frozen snapshot of a kernel: sources, captures, and how its arguments are specialised.

These records are what the frontend lowers and what a compile request carries; nothing in them
refers to a live Python object, and nothing here imports xDSL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Protocol, TypeAlias

from tilewright.frontend.constants import AggregateRef, Constant, NamedTupleClass
from tilewright.support.dataclass import dataclass, replace

ArgumentPath: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function.

    `kind` is `positional`, `keyword` (only) or `varargs`; `annotation` is '' or `constexpr`,
    `const`, or a type as in signatures (`i64`, `*fp32`).
    """

    name: str
    kind: str = "positional"
    annotation: str = ""
    has_default: bool = False
    default: Constant = None
    specialize: bool = True
    specialize_alignment: bool = True

    @property
    def is_constexpr(self) -> bool:
        """Whether the argument must be known at compile time."""
        return self.annotation == "constexpr"


@dataclass(frozen=True)
class FunctionSource:
    """One function as written: `text` is dedented by `indent` columns and starts at `first_line`.

    `captures` maps each dotted global name that the text reads to what it means. A call whose
    result nothing reads is an error for a function whose `must_use` says why. Of an aggregate class
    (`is_class`) the parameters are its fields and the captures its methods and bases. A function
    that runs at compile time (`is_host`) is declared so, or an ordinary one (`is_ordinary`).
    """

    key: str
    name: str
    module: str
    file: str
    first_line: int
    indent: int
    text: str
    parameters: tuple[Parameter, ...]
    captures: Mapping[str, Constant] = field(default_factory=dict)
    is_host: bool = False
    is_ordinary: bool = False
    is_class: bool = False
    must_use: str = ""

    @property
    def definition_line(self) -> int:
        """The number of the line with `def`, below the decorators."""
        starts = (line.lstrip().startswith("def ") for line in self.text.splitlines())
        return self.first_line + next((i for i, found in enumerate(starts) if found), 0)


@dataclass(frozen=True)
class TupleType:
    """The type of a tuple argument, with its NamedTuple or aggregate class when it has one."""

    items: tuple[TypeTree, ...]
    cls: NamedTupleClass | AggregateRef | None = None


TypeTree: TypeAlias = "str | TupleType"


@dataclass(frozen=True)
class Specialization:
    """What a kernel is compiled for: argument types, constants and divisibility.

    `signature` has one entry for each parameter, in order; a `constexpr` leaf has its value in
    `constants`. `divisibility` holds the leaves known to be multiples (of bytes for pointers).
    """

    signature: tuple[tuple[str, TypeTree], ...]
    constants: Mapping[ArgumentPath, Constant] = field(default_factory=dict)
    divisibility: Mapping[ArgumentPath, int] = field(default_factory=dict)

    def with_divisors_from(self, least: int) -> Specialization:
        """What is compiled for a target to which smaller divisors than `least` say nothing."""
        known = {path: value for path, value in self.divisibility.items() if value >= least}
        return replace(self, divisibility=known)

    def plain_constants(self) -> str:
        """The arguments that are numbers, texts or None for good, as `name=value`, in order."""
        return ", ".join(
            f"{name}={value!r}"
            for name, type_ in self.signature
            if type_ == "constexpr"
            and isinstance(value := self.constants.get((name,)), bool | int | float | str | None)
        )

    def leaves(self) -> Iterator[tuple[ArgumentPath, str]]:
        """Every leaf of the signature with its path, constants included, in order."""
        for name, type_ in self.signature:
            yield from _leaves((name,), type_)

    def runtime_leaves(self) -> tuple[tuple[ArgumentPath, str], ...]:
        """The leaves that are passed at launch, in order."""
        return tuple((path, text) for path, text in self.leaves() if text != "constexpr")


def _leaves(path: ArgumentPath, type_: TypeTree) -> Iterator[tuple[ArgumentPath, str]]:
    if isinstance(type_, str):
        yield path, type_
        return
    for index, item in enumerate(type_.items):
        yield from _leaves((*path, index), item)


class LoweringRequest(Protocol):
    """What the frontend needs of a compile request."""

    @property
    def functions(self) -> Mapping[str, FunctionSource]:
        """The kernel and every function that it may call, by key."""
        ...

    @property
    def kernel(self) -> str:
        """The key of the kernel."""
        ...

    @property
    def specialization(self) -> Specialization:
        """What the kernel is compiled for."""
        ...

    @property
    def options(self) -> Mapping[str, object]:
        """The compile options by name."""
        ...

    @property
    def extensions(self) -> tuple[str, ...]:
        """The packages whose functions the kernel may call."""
        ...
