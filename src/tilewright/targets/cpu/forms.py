"""How the CPU computes an op that is no function of its operands' elements at one index.

An op has one of two forms. *Element by element*: a nest of its own visits the elements of the
first operand in index order, one scalar at a time. *A step*: code of its own on whole tiles,
which finds its operands' elements by an `Evaluator` and its results' places by `Lowering.buffer`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region

from tilewright.ir.op import build
from tilewright.ir.types import shape_of
from tilewright.support.rules import RuleTable
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.ops import NestOp, YieldOp
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import Root

Visit = Callable[[Evaluator, Root, Coords], None]
Prepare = Callable[[Evaluator, Root], None]
Step = Callable[[Lowering, Block, Operation], None]

ELEMENTS: RuleTable[Visit] = RuleTable("cpu elements")
"""What an op does at one element; it runs after all loads of that element."""
PREPARATIONS: RuleTable[Prepare] = RuleTable("cpu preparations")
"""What an op of `ELEMENTS` needs before its loops, such as an accumulator at zero."""
STEPS: RuleTable[Step] = RuleTable("cpu steps")
"""The code of an op on whole tiles, appended to a block."""
SCALAR_STEPS: RuleTable[Step] = RuleTable("cpu scalar steps")
"""The code of what is no nest and reads no tile as a whole: control flow, accesses of scalars."""


@contextmanager
def step_nest(lowering: Lowering, out: Block, op: Operation) -> Generator[Evaluator]:
    """The nest of one op's own code: what the evaluator emits, appended to `out` at the end."""
    block = Block()
    yield Evaluator(lowering, Emitter(block, op.location))
    block.add_op(build(YieldOp, location=op.location))
    properties: dict[str, Attribute] = {
        "bounds": DenseArrayBase.from_list(i64, list(shape_of(op.operands[0].type))),
        "vector": IntegerAttr(1, i64),
    }
    out.add_op(build(NestOp, (), (), properties, (Region(block),), op.location))


@contextmanager
def each_index(ev: Evaluator, dim: int, extent: int) -> Generator[None]:
    """A loop over dimension `dim`: inside of it the index there is `loop_coord(dim)`."""
    ev.variables[dim], _ = ev.emit.open_loop()
    yield
    ev.emit.close_loop((0, extent, 1))
