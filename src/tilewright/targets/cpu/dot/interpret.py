"""How the interpreter runs the CPU's packing and its microkernel.

What `cpu.pack` writes is opaque to everything but `cpu.dot`, so here packed operands are plain
row-major matrices, whatever panels the machine uses.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation, SSAValue

from tilewright.interp.access import Lanes, forget_lanes, lanes_of, read, unknown_lanes, write
from tilewright.interp.casts import integer_to_float, round_float
from tilewright.interp.code import PlainFunction, Preparation
from tilewright.interp.program import Program
from tilewright.interp.rules.memory import pointee_of
from tilewright.interp.values import memory_dtype_of
from tilewright.ir.narrow_floats import widened
from tilewright.ir.op import Array
from tilewright.targets.cpu import ops


def _matrix(base: Array, rows: int, columns: int, stride: int, width: int) -> Lanes:
    """The addresses of a matrix whose rows lie `stride` elements apart."""
    row = np.arange(rows, dtype=np.int64)[:, None] * stride
    column = np.arange(columns, dtype=np.int64)[None, :]
    return lanes_of(base + (row + column) * width, None)


def pack(operation: Operation, _: Preparation) -> PlainFunction:
    """cpu.pack: a copy to a row-major matrix in the type that cpu.dot reads."""
    assert isinstance(operation, ops.PackOp)
    rows, columns = operation.rows.value.data, operation.columns.value.data
    is_transposed = operation.transposed is not None
    source = memory_dtype_of(pointee_of(operation.src.type))
    target = _packed_dtype(operation, operation.dst)

    def evaluate(program: Program, src: Array, stride: Array, dst: Array, *there: Array) -> None:
        num_rows, num_columns, *filled = map(int, there) if there else (rows, columns) * 2
        shape = (num_columns, num_rows) if is_transposed else (num_rows, num_columns)
        lanes = _matrix(src, *shape, int(stride), source.itemsize)
        unknown = unknown_lanes(program, lanes, source.itemsize)
        found = _converted(read(program, lanes, source), target).reshape(shape)
        unclear = np.zeros(shape, np.bool_) if unknown is None else unknown.reshape(shape)
        values, lost = np.zeros((rows, columns), target), np.zeros((rows, columns), np.bool_)
        values[:num_rows, :num_columns] = found.T if is_transposed else found
        lost[:num_rows, :num_columns] = unclear.T if is_transposed else unclear
        packed = _matrix(dst, rows, columns, columns, target.itemsize)
        write(program, packed, values.ravel())
        lost[filled[0] :], lost[:, filled[1] :] = True, True
        if lost.any():
            forget_lanes(program, packed.select(np.flatnonzero(lost.ravel())), target.itemsize)

    return evaluate


def _packed_dtype(operation: ops.PackOp | ops.DotOp, buffer: SSAValue) -> np.dtype:
    """What a packed operand is kept as here: an f16 that the machine splits stays one."""
    if ops.unit_of(operation) == ops.SPLIT_AMX_UNIT:
        return np.dtype(np.float16)
    return memory_dtype_of(pointee_of(buffer.type))


def _converted(values: Array, dtype: np.dtype) -> Array:
    """Operands in the type that the microkernel reads; exact for the types it packs."""
    if values.dtype == dtype:
        return values
    if values.dtype.kind in "iu":
        is_integer = dtype.kind in "iu"
        return values.astype(dtype) if is_integer else integer_to_float(values, dtype, signed=True)
    return round_float(values, dtype)


def dot(operation: Operation, _: Preparation) -> PlainFunction:
    """cpu.dot: the product summed in double precision and rounded once.

    What lies beyond its limits is undefined afterwards, so whoever uses it is found.
    """
    assert isinstance(operation, ops.DotOp)
    extents = tuple(getattr(operation, name).value.data for name in "mnk")
    num_limits, has_target = _num_limits(operation), operation.target is not None
    has_choice = operation.is_last is not None
    ldc = extents[1] if operation.acc_stride is None else operation.acc_stride.value.data
    types = [_packed_dtype(operation, v) for v in (operation.a, operation.b)]
    types.append(memory_dtype_of(pointee_of(operation.acc.type)))
    starts_at_zero = operation.zero_init is not None
    has_stride = operation.a_stride is not None
    source = operation.b_source
    has_source, is_across = source is not None, operation.transposed_b is not None
    b_type = types[1] if source is None else memory_dtype_of(pointee_of(source.type))
    away = operation.acc if operation.target is None else operation.target
    target_type = memory_dtype_of(pointee_of(away.type))

    def evaluate(program: Program, a: Array, b: Array, acc: Array, *more: Array) -> None:
        target, adds = types[2], not starts_at_zero
        place, place_stride, stored = acc, ldc, types[2]
        is_away = has_target and not (has_choice and not bool(more[-1]))
        more = more[:-1] if has_choice else more
        if has_target:
            adds = not bool(more[-1])
            if is_away:
                place, place_stride, stored = more[-3], int(more[-2]), target_type
            more = more[:-3]
        more, seen = more[: len(more) - num_limits], more[len(more) - num_limits :]
        m, n, k = (*map(int, seen), *extents[num_limits:])
        stride = int(more[0]) if has_stride else extents[2]
        b, b_stride = (more[-2], int(more[-1])) if has_source else (b, extents[1])
        lhs, lhs_lost = _operand(program, a, (m, k), types[0], stride)
        shape = (n, k) if is_across else (k, n)
        rhs, rhs_lost = _operand(program, b, shape, b_type, b_stride)
        if is_across:
            rhs, rhs_lost = rhs.T, rhs_lost.T
        rhs = _converted(rhs, types[1])
        lost = lhs_lost.any(axis=1, keepdims=True) | rhs_lost.any(axis=0, keepdims=True)
        lanes = _matrix(place, m, n, place_stride, stored.itemsize)
        total = _product(lhs, rhs, target)
        if adds:
            before, before_lost = _operand(program, acc, (m, n), target, ldc)
            total = total + widened(before).astype(total.dtype)
            lost = lost | before_lost
        result = total.astype(target) if target.kind in "iu" else round_float(total, target)
        if num_limits and not has_target:
            whole = _matrix(acc, extents[0], extents[1], ldc, target.itemsize)
            forget_lanes(program, whole, target.itemsize)
        write(program, lanes, _converted(result, stored).ravel())
        if lost.any():
            forget_lanes(program, lanes.select(np.flatnonzero(lost.ravel())), stored.itemsize)

    return evaluate


def _num_limits(operation: ops.DotOp) -> int:
    """How many of rows, columns and depth are limited, in this order."""
    limits = (operation.rows, operation.columns, operation.depth)
    return sum(limit is not None for limit in limits)


def _operand(
    program: Program,
    base: Array,
    shape: tuple[int, int],
    dtype: np.dtype,
    stride: int | None = None,
) -> tuple[Array, Array]:
    """A row-major matrix in memory and which of its elements are undefined."""
    lanes = _matrix(base, *shape, shape[1] if stride is None else stride, dtype.itemsize)
    unknown = unknown_lanes(program, lanes, dtype.itemsize)
    lost = np.zeros(shape, np.bool_) if unknown is None else unknown.reshape(shape)
    return read(program, lanes, dtype).reshape(shape), lost


def _product(a: Array, b: Array, target: np.dtype) -> Array:
    if target.kind in "iu":
        return np.matmul(a.astype(np.int64), b.astype(np.int64))
    return np.matmul(widened(a).astype(np.float64), widened(b).astype(np.float64))
