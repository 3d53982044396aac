"""Ops that compute values from values: by their `reference` method, with care for narrow types.

Narrow floats are widened to float32, computed, and rounded once. i1 counts as the integers 0
and -1 of one bit. A zero divisor or a shift past the width gives an undefined element.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import Attribute, Operation

from tilewright.interp.casts import round_float
from tilewright.interp.code import PlainFunction, Preparation
from tilewright.interp.program import Program
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.interp.values import (
    ADDRESS,
    BOOL,
    constant_array,
    dtype_of,
    spread,
)
from tilewright.ir.narrow_floats import NARROW_FLOATS, widened
from tilewright.ir.op import Array, TileOp, ops_of
from tilewright.ir.types import PointerType, element_of, is_float, shape_of, storage_bytes
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp, UnsplatOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, INTEGER_BINARY_OPS, FmaOp, SelectOp
from tilewright.ops.elementwise.reference import odd_sum
from tilewright.ops.extern.ir import ExternElementwiseOp
from tilewright.ops.indexing.ir import GatherOp
from tilewright.ops.matmul.ir import DotOp, multiply_add
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.shape import ir as shapes
from tilewright.support.errors import BrokenPromise

_DIVISIONS = tuple(ELEMENTWISE[f"arith.{name}"] for name in ("divsi", "divui", "remsi", "remui"))
_TOTAL_INTEGER = tuple(op for op in INTEGER_BINARY_OPS if op not in _DIVISIONS)


@TILE_RULES.plain.register(*ops_of(shapes), MakeRangeOp, UnsplatOp, SelectOp, GatherOp)
@TILE_RULES.plain.register(ExternElementwiseOp)
def by_reference(operation: Operation, _: Preparation) -> PlainFunction:
    """The rule of an op whose reference moves elements, and leaves their bits as they are."""
    assert isinstance(operation, TileOp)
    reference = operation.reference

    def evaluate(program: Program, *operands: Array) -> Array | tuple[Array, ...]:
        return reference(*operands)

    return evaluate


@TILE_RULES.plain.register(TileOp)
def by_widened_reference(operation: Operation, preparation: Preparation) -> PlainFunction:
    """The rule of every op without another: by its reference, narrow floats through float32."""
    assert isinstance(operation, TileOp)
    dtypes = [dtype_of(value.type) for value in (*operation.operands, *operation.results)]
    if not any(dtype in NARROW_FLOATS for dtype in dtypes):
        return by_reference(operation, preparation)
    reference = operation.reference
    targets = [dtype_of(result.type) for result in operation.results]

    def round_one(value: Array, dtype: np.dtype) -> Array:
        return round_float(value, dtype) if dtype in NARROW_FLOATS else value

    def evaluate(program: Program, *operands: Array) -> Array | tuple[Array, ...]:
        results = reference(*map(widened, operands))
        if not isinstance(results, tuple):
            return round_one(results, targets[0])
        return tuple(map(round_one, results, targets))

    return evaluate


@TILE_RULES.plain.register(FmaOp)
def fused(operation: Operation, preparation: Preparation) -> PlainFunction:
    """a * b + c, where even narrow floats are rounded only once."""
    dtype = dtype_of(operation.results[0].type)
    if dtype not in NARROW_FLOATS:
        return by_reference(operation, preparation)

    def evaluate(program: Program, *operands: Array) -> Array:
        a, b, c = (widened(operand).astype(np.float64) for operand in operands)
        return round_float(odd_sum(a * b, c), dtype)

    return evaluate


@TILE_RULES.plain.register(CmpIOp, *_TOTAL_INTEGER)
def on_integers(operation: Operation, preparation: Preparation) -> PlainFunction:
    """The rule of an op on integers of any width, one bit included."""
    assert isinstance(operation, TileOp)
    if dtype_of(operation.operands[0].type) != BOOL:
        return by_reference(operation, preparation)
    reference = operation.reference

    def evaluate(program: Program, *operands: Array) -> Array:
        result = reference(*(-operand.astype(np.int8) for operand in operands))
        assert not isinstance(result, tuple)
        return (result & 1).astype(BOOL)

    return evaluate


@TILE_RULES.plain.register(*_DIVISIONS)
def on_some_integers(operation: Operation, preparation: Preparation) -> PlainFunction:
    """The rule of a division, which some right operands leave undefined."""
    total = on_integers(operation, preparation)

    def evaluate(program: Program, lhs: Array, rhs: Array) -> Array:
        bad = rhs == 0
        if np.any(bad):
            program.make_poison(np.broadcast_to(bad, np.broadcast(lhs, rhs).shape))
            program.note_division(operation)
        return total(program, lhs, rhs)

    return evaluate


@TILE_RULES.plain.register(ConstantOp)
def constant(operation: Operation, _: Preparation) -> PlainFunction:
    """A constant, made once."""
    assert isinstance(operation, ConstantOp)
    value = constant_array(operation.value, operation.result.type)
    return lambda program: value


@TILE_RULES.plain.register(SplatOp)
def splat(operation: Operation, _: Preparation) -> PlainFunction:
    """A scalar in every element."""
    shape = shape_of(operation.results[0].type)
    return lambda program, src: spread(src, shape)


@TILE_RULES.plain.register(GetProgramIdOp)
def program_id(operation: Operation, _: Preparation) -> PlainFunction:
    """The coordinate of the program along an axis."""
    assert isinstance(operation, GetProgramIdOp)
    axis = operation.axis.value.data
    return lambda program: np.array(program.coordinates[axis], np.int32)


@TILE_RULES.plain.register(GetNumProgramsOp)
def num_programs(operation: Operation, _: Preparation) -> PlainFunction:
    """The extent of the grid along an axis."""
    assert isinstance(operation, GetNumProgramsOp)
    axis = operation.axis.value.data
    return lambda program: np.array(program.machine.grid[axis], np.int32)


@TILE_RULES.plain.register(GetGridExtentOp)
def grid_extent(operation: Operation, _: Preparation) -> PlainFunction:
    """The extent of the grid that the launch asks for, along an axis."""
    assert isinstance(operation, GetGridExtentOp)
    axis = operation.axis.value.data
    return lambda program: np.array(program.machine.asked_grid[axis], np.int32)


@TILE_RULES.plain.register(AddPtrOp)
def add_pointer(operation: Operation, _: Preparation) -> PlainFunction:
    """Addresses moved by whole elements."""
    assert isinstance(operation, AddPtrOp)
    pointer = element_of(operation.ptr.type)
    assert isinstance(pointer, PointerType)
    step = storage_bytes(pointer.pointee)

    def evaluate(program: Program, pointers: Array, offsets: Array) -> Array:
        return pointers + offsets.astype(ADDRESS) * step

    return evaluate


@TILE_RULES.plain.register(DotOp)
def dot(operation: Operation, _: Preparation) -> PlainFunction:
    """A matrix product, accumulated in a wider type and rounded once."""
    assert isinstance(operation, DotOp)
    multiply = matrix_product(operation.a.type, operation.result.type)
    return lambda program, a, b, c: multiply(a, b, c)


def matrix_product(operand: Attribute, result: Attribute) -> Callable[[Array, Array, Array], Array]:
    """a @ b + c for operands of one type and a result of another, rounded once.

    Integers wrap around; floats are accumulated in float64.
    """
    target = dtype_of(result)
    if not is_float(operand):
        return multiply_add

    def multiply(a: Array, b: Array, c: Array) -> Array:
        x, y, z = (widened(operand).astype(np.float64) for operand in (a, b, c))
        if target == np.float64:
            return multiply_add(x, y, c)
        return round_float(np.matmul(x, y) + z, target)

    return multiply


@TILE_RULES.plain.register(HintOp)
def hint(operation: Operation, _: Preparation) -> PlainFunction:
    """The value itself, after a test that the promises about it hold."""
    assert isinstance(operation, HintOp)
    checks = [
        (name, _CHECKS[name], tuple(int(n) for n in values.get_values()))
        for name in ("divisibility", "contiguity", "constancy")
        if (values := getattr(operation, name)) is not None
    ]

    def evaluate(program: Program, src: Array) -> Array:
        for name, holds, numbers in checks:
            if not program.has_poison and not holds(np.atleast_1d(src), numbers):
                raise program.fault(BrokenPromise, f"the promised {name} {numbers} does not hold")
        return src

    return evaluate


def _is_divisible(src: Array, numbers: tuple[int, ...]) -> bool:
    # Only the first element is the start of a run for certain.
    return int(src.flat[0]) % max(numbers[0], 1) == 0


def _in_runs(src: Array, numbers: tuple[int, ...], step: int) -> bool:
    for axis, run in enumerate(numbers[: src.ndim]):
        if run <= 1 or src.shape[axis] % run:
            continue
        moved = np.moveaxis(src, axis, -1)
        runs = moved.reshape(*moved.shape[:-1], -1, run)
        if not (np.diff(runs, axis=-1) == step).all():
            return False
    return True


_CHECKS: dict[str, Callable[[Array, tuple[int, ...]], bool]] = {
    "divisibility": _is_divisible,
    "contiguity": lambda src, numbers: _in_runs(src, numbers, 1),
    "constancy": lambda src, numbers: _in_runs(src, numbers, 0),
}
