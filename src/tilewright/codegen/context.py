"""What a lowering rule may use: the function under construction and the values so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Protocol

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.codegen.line_table import LineTable
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm_types import llvm_type
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.support.rules import RuleTable

Rule = Callable[["EmitContext", Operation], None]


class TargetServices(Protocol):
    """What the default rules ask of a target."""

    def convert_float(
        self,
        fn: FunctionBuilder,
        source: Attribute,
        target: Attribute,
        lanes: int | None,
        value: str,
        rounding: str,
    ) -> str:
        """Convert between float element types, correctly rounded."""
        ...

    def emit_math(
        self, fn: FunctionBuilder, name: str, type_: Attribute, operands: Sequence[str]
    ) -> str:
        """A math function on float32 or float64, scalar or vector."""
        ...


@dataclass
class EmitContext:
    """One function being emitted: rules read operands' names and define results' names."""

    module: ModuleBuilder
    fn: FunctionBuilder
    rules: RuleTable[Rule]
    target: TargetServices
    values: dict[SSAValue, str] = field(default_factory=dict)
    lines: LineTable | None = None

    def value(self, operand: SSAValue) -> str:
        """The LLVM name of an operand."""
        name = self.values.get(operand)
        if name is None:
            raise InternalError(f"an operand of type {operand.type} was not emitted before its use")
        return name

    def typed(self, operand: SSAValue) -> str:
        """`type name` of an operand."""
        return f"{llvm_type(operand.type)} {self.value(operand)}"

    def define(self, op: Operation, *names: str) -> None:
        """Name the results of `op`."""
        for result, name in zip(op.results, names, strict=True):
            self.values[result] = name

    def parts(self, operand: SSAValue) -> list[str]:
        """The LLVM values that an operand consists of: one, unless it is a tile."""
        return [self.value(operand)]

    def part_types(self, type_: Attribute) -> list[str]:
        """The LLVM types of the parts of a value of `type_`."""
        return [llvm_type(type_)]

    def define_parts(self, value: SSAValue, names: Sequence[str]) -> None:
        """Name the parts of a value."""
        (self.values[value],) = names

    def emit_block(self, block: Block) -> None:
        """Emit every op of a block in order, its terminator left to the caller's rule."""
        for op in block.ops:
            self.emit_op(op)

    def emit_op(self, op: Operation) -> None:
        """Emit one op by its rule, at its source line."""
        rule = self.rules.find(type(op))
        if rule is None:
            raise InternalError(f"no lowering rule for {op.name} ({self.rules.name})")
        self.mark_line(op)
        rule(self, op)

    def mark_line(self, op: Operation) -> None:
        """From here on instructions stand for the line of an op; an unknown one changes nothing."""
        found = self.lines.attachment(op) if self.lines is not None else None
        if found is not None:
            self.fn.location = found
