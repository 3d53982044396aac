"""What the lowering of one kernel shares between its frames.

The builder, the code of its functions, and what was found about loops.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import cast

from xdsl.ir import Attribute, Operation, Region, SSAValue

from tilewright.frontend.liveness import Liveness, Names
from tilewright.frontend.program import FunctionSource
from tilewright.ops.builder import Builder
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import KernelTooLarge

MAX_OPS = 200_000


class KernelBuilder(Builder):
    """The builder of a kernel, which counts ops."""

    num_ops = 0

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Append one op.

        Raises: KernelTooLarge past the limit.
        """
        self.num_ops += 1
        if self.num_ops > MAX_OPS:
            raise KernelTooLarge(f"the kernel lowers to more than {MAX_OPS} operations")
        return super().emit(cls, operands, result_types, properties, regions)


@dataclass(frozen=True)
class FunctionCode:
    """A function of the request, parsed and analysed once."""

    source: FunctionSource
    node: ast.FunctionDef
    liveness: Liveness

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the function's text."""
        return self.source.text.splitlines()

    def line(self, number: int) -> str:
        """One source line by its number in the file."""
        index = number - self.source.first_line
        return self.lines[index] if 0 <= index < len(self.lines) else ""

    def column(self, line: int, offset_bytes: int) -> int:
        """The column (from 1) of a UTF-8 offset, as `ast` counts."""
        text = self.line(line)
        if text.isascii():
            return offset_bytes + 1
        return len(text.encode()[:offset_bytes].decode(errors="replace")) + 1


@dataclass(frozen=True)
class HostFunction:
    """A compile-time function rebuilt from its source, with the names that it reads."""

    name: str
    namespace: dict[str, object]

    def __call__(self, *args: object, **kwargs: object) -> object:
        """The function's result on plain values."""
        function = cast("Callable[..., object]", self.namespace[self.name])
        return function(*args, **kwargs)


@dataclass
class LoopFindings:
    """What lowering the body of a loop showed, at one place of the kernel.

    `grown` are the leaves that it carries though they are known before it, `returned` what it
    returns at run time, `leaves`: it may be left early at run time.
    """

    grown: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)
    returned: object = None
    leaves: bool = False


@dataclass
class LoopContext:
    """The innermost loop of a frame: the variables that `break` and `continue` pass on."""

    carried: Names


@dataclass
class Scope:
    """The variables at one point of a function.

    `variables` holds the values; `lost` says why a name that was assigned has no value now;
    `assigned_at` gives the line of the last assignment. Names that start with `%` are the
    frontend's own: the flags of `return`, `break` and `continue`, and the returned value.
    """

    variables: dict[str, object] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    assigned_at: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Scope:
        """The same variables, to be changed on another path."""
        return Scope(dict(self.variables), dict(self.lost), dict(self.assigned_at))
