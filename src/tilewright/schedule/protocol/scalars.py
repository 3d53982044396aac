"""The scalars of a protocol's run: what the arguments and the program's number make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation

from tilewright.ir.op import Array, ElementwiseOp
from tilewright.ir.schedule_attributes import COMMON
from tilewright.ir.types import PointerType, storage_bytes
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.memory.ir import AddPtrOp, LoadOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable


@dataclass(frozen=True)
class Launch:
    """What the scalars of a run follow from: integer arguments by number, and the program.

    `programs` run, and `grid` is what the launch asks for: () where they are the same. Arrays lie
    apart from each other, or all of them are one (`overlaps`).
    """

    arguments: Mapping[int, int]
    program: tuple[int, int, int] = (0, 0, 0)
    programs: tuple[int, int, int] = (1, 1, 1)
    grid: tuple[int, ...] = ()
    overlaps: bool = False

    def address_of(self, argument: int) -> int:
        """The address that a run takes for that of an array, by the number of the argument."""
        return _ARRAY_BYTES * (1 if self.overlaps else argument + 1)


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


def _read(address: int, width: int, launch: Launch) -> int:
    """What memory holds at an address: addresses of arrays, and sizes around those of the launch.

    Whoever reads it finds the same.
    """
    if width == _ADDRESS_BITS:
        return launch.address_of(_FIRST_HELD + address // (_ADDRESS_BITS // 8))
    size = max(launch.arguments.values(), default=1)
    return (size, 2 * size, 1, size, 0)[address // (width // 8 or 1) % 5]


# By definition: in a run arrays lie so far apart, and those that memory leads to follow these.
_ARRAY_BYTES, _FIRST_HELD = 1 << 40, 1 << 12
_SAME_BITS = ("tt.int_to_ptr", "tt.ptr_to_int")
# By definition: the bits of a pointer.
_ADDRESS_BITS = 64


def _of_address(op: Operation, operands: Sequence[object], launch: Launch) -> int | None:
    """The value of an op on scalar addresses: computed, taken for an integer, or read through."""
    known = [operand for operand in operands if isinstance(operand, int)]
    if len(known) < len(op.operands) or not op.results:
        return None
    type_ = op.results[0].type
    if op.name in _SAME_BITS:
        return known[0]
    if isinstance(op, AddPtrOp):
        assert isinstance(type_, PointerType)
        return known[0] + known[1] * storage_bytes(type_.pointee)
    if isinstance(op, LoadOp) and COMMON in op.attributes and isinstance(type_, IntegerType):
        return _read(known[0], type_.width.data, launch)
    return None


def scalar_of(op: Operation, operands: Sequence[object], launch: Launch) -> int | None:
    """The value of an op on integers; None where it is none or not known."""
    source = SOURCES.find(type(op))
    if source is not None:
        return source(op, launch)
    if op.name in _SAME_BITS or isinstance(op, AddPtrOp | LoadOp):
        return _of_address(op, operands, launch)
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
