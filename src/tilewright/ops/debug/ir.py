"""Printing, assertions, assumptions and barriers."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, UnitAttr
from xdsl.ir import Operation
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import Effect, Order, Resource, update, write
from tilewright.ir.op import Array, DerivedAddress, ElementwiseOp, TileOp


@irdl_op_definition
class PrintOp(TileOp):
    """Print every element of `args` as `pid (x, y, z) idx (i, …) prefix: value`.

    `prefix` is the text between index and value, its spaces and colon included.
    """

    name = "tt.print"
    prefix = prop_def(StringAttr)
    hex = prop_def()
    is_signed = opt_prop_def(DenseArrayBase, prop_name="isSigned")
    args = var_operand_def()

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.CONSOLE),)


@irdl_op_definition
class AssertOp(TileOp):
    """Report `message` with program and index where `condition` fails (and mask holds).

    `kind` says what failed: `assert` (the author's own), `bounds`, `overflow` or `division`
    (checked mode).
    """

    name = "tt.assert"
    message = prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    condition = operand_def()
    mask = opt_operand_def()

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.CONTROL),)


@irdl_op_definition
class AssumeOp(TileOp):
    """A promise of the author that `condition` (a scalar i1) holds."""

    name = "llvm.intr.assume"
    condition = operand_def()

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.CONTROL),)


def is_assumption(op: Operation) -> bool:
    """Whether an op is a promise of the author, which holds whoever runs it."""
    return isinstance(op, AssumeOp)


@irdl_op_definition
class BarrierOp(TileOp):
    """All lanes of the program wait for each other; no effect where tiles run in order."""

    name = "gpu.barrier"

    def effects(self) -> tuple[Effect, ...]:
        return (Order.BARRIER,)


@irdl_op_definition
class HintOp(ElementwiseOp):
    """`src` itself, with facts the author promises per dimension.

    `divisibility` (of the first element of each contiguous run), `contiguity` (run length) and
    `constancy` (run length of equal values).
    """

    name = "tw.hint"
    src = operand_def()
    divisibility = opt_prop_def(DenseArrayBase)
    contiguity = opt_prop_def(DenseArrayBase)
    constancy = opt_prop_def(DenseArrayBase)
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())

    def reference(self, src: Array) -> Array:
        return src


@irdl_op_definition
class BreakpointOp(TileOp):
    """Stop in the debugger with `values` under their `names`; only the interpreter can.

    A value that the frontend cannot name is left out. With `is_step` the program only comes by
    a line, for who steps through the kernel. `functions` are the active ones, innermost first.
    """

    name = "tw.breakpoint"
    names = prop_def(ArrayAttr)
    functions = opt_prop_def(ArrayAttr)
    is_step = opt_prop_def(UnitAttr)
    values = var_operand_def()

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.ANY),)

    def variable_names(self) -> tuple[str, ...]:
        """The variables' names, one per operand."""
        return tuple(name.data for name in self.names if isinstance(name, StringAttr))

    def function_names(self) -> tuple[str, ...]:
        """The names of the functions that are active, the innermost first."""
        names = self.functions or ArrayAttr(())
        return tuple(name.data for name in names if isinstance(name, StringAttr))

    def verify_(self) -> None:
        """There is a name for each value."""
        if len(self.variable_names()) != len(self.values):
            raise VerifyException("tw.breakpoint: names and values differ in number")
