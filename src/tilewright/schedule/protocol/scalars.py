"""The scalars of a protocol's run: what the arguments and the program's number make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation

from tilewright.ir.op import Array, ElementwiseOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable


@dataclass(frozen=True)
class Launch:
    """What the scalars of a run follow from: integer arguments by number, and the program.

    `programs` run, and `grid` is what the launch asks for: () where they are the same.
    """

    arguments: Mapping[int, int]
    program: tuple[int, int, int] = (0, 0, 0)
    programs: tuple[int, int, int] = (1, 1, 1)
    grid: tuple[int, ...] = ()


SOURCES: RuleTable[Callable[[Operation, Launch], int | None]] = RuleTable("sources of scalars")


@SOURCES.register(ConstantOp)
def _constant(op: ConstantOp, launch: Launch) -> int | None:
    return int(op.splat_value()) if isinstance(op.result.type, IntegerType) else None


@SOURCES.register(GetProgramIdOp)
def _program(op: GetProgramIdOp, launch: Launch) -> int:
    return launch.program[op.axis.value.data]


@SOURCES.register(GetNumProgramsOp)
def _programs(op: GetNumProgramsOp, launch: Launch) -> int:
    return launch.programs[op.axis.value.data]


@SOURCES.register(GetGridExtentOp)
def _extent(op: GetGridExtentOp, launch: Launch) -> int:
    return (launch.grid or launch.programs)[op.axis.value.data]


def scalar_of(op: Operation, operands: Sequence[object], launch: Launch) -> int | None:
    """The value of an op on integers; None where it is none or not known."""
    source = SOURCES.find(type(op))
    if source is not None:
        return source(op, launch)
    if not isinstance(op, ElementwiseOp) or not isinstance(op.results[0].type, IntegerType):
        return None
    arrays = [_typed(v, s.type) for v, s in zip(operands, op.operands, strict=True)]
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays):
        return None
    if op.name in _CASTS:
        return _cast(op, int(known[0]))
    result = op.reference(*known)
    return None if isinstance(result, tuple) else int(result)


_CASTS = ("arith.extsi", "arith.extui", "arith.trunci")


def _cast(op: Operation, value: int) -> int:
    """An integer in another width; a bit is 0 or 1."""
    source, target = op.operands[0].type, op.results[0].type
    assert isinstance(source, IntegerType) and isinstance(target, IntegerType)
    if op.name == "arith.extui":
        return value % (1 << source.width.data)
    if op.name == "arith.extsi" and source.width.data == 1:
        return -value
    made = _typed(value, target)
    assert made is not None
    return int(made)


def _typed(value: object, type_: Attribute) -> Array | None:
    """An integer as the array that a reference takes; None where it is not known."""
    if not isinstance(value, int) or not isinstance(type_, IntegerType):
        return None
    width = type_.width.data
    if width == 1:
        return np.array(bool(value))
    low = value % (1 << width)
    return np.array(low - (1 << width) if low >> (width - 1) else low, np.dtype(f"i{width // 8}"))
