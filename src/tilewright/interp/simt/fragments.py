"""Where matrix instructions keep elements: fragments in registers, and their products.

Source: PTX ISA 8.8, "Matrix Fragments" of `mma` and `wgmma`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np

from tilewright.interp.simt.rounding import narrow
from tilewright.ir.op import Array

_LANES = np.arange(32)
_GROUP, _THREAD = _LANES // 4, _LANES % 4
OPERAND_DTYPES: dict[str, np.dtype] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
}


@cache
def a_places(registers: int, elements: int) -> tuple[Array, Array]:
    """Row and column of each element of an A fragment, shape [32, registers, elements]."""
    register, element = np.arange(registers)[:, None], np.arange(elements)
    row = _GROUP[:, None, None] + 8 * (register & 1) + 0 * element
    column = elements * _THREAD[:, None, None] + element + 4 * elements * (register >> 1)
    return row, column


@cache
def b_places(registers: int, elements: int) -> tuple[Array, Array]:
    """Row (k) and column of each element of a B fragment, shape [32, registers, elements]."""
    register, element = np.arange(registers)[:, None], np.arange(elements)
    row = elements * _THREAD[:, None, None] + element + 4 * elements * register
    return row, _GROUP[:, None, None] + 0 * row


@cache
def accumulator_places(registers: int) -> tuple[Array, Array]:
    """Row and column of each accumulator of one warp, shape [32, registers]."""
    register = np.arange(registers)
    row = _GROUP[:, None] + 8 * (register >> 1 & 1)
    column = 8 * (register >> 2) + 2 * _THREAD[:, None] + (register & 1)
    return row, column


def widen(elements: Array, kind: str) -> Array:
    """Operand elements as float64 or int64; tf32 reads the upper 19 bits of a register."""
    if kind == "tf32":
        bits = elements.view(np.uint32) & np.uint32(0xFFFFE000)
        return bits.view(np.float32).astype(np.float64)
    return elements.astype(np.int64 if elements.dtype.kind in "iu" else np.float64)


def _fragment(registers: Sequence[Array], kind: str) -> Array:
    """The elements of the registers, shape [warps, 32, registers, elements]."""
    stacked = np.ascontiguousarray(np.stack(registers, 1))
    dtype = OPERAND_DTYPES[kind]
    if kind == "f64":
        return stacked.view(dtype).reshape(-1, 32, len(registers), 1)
    return stacked.view(dtype).reshape(-1, 32, len(registers), 4 // dtype.itemsize)


def a_matrix(registers: Sequence[Array], kind: str) -> Array:
    """The 16-row A operands of all warps, shape [warps, 16, K], widened."""
    elements = widen(_fragment(registers, kind), kind)
    row, column = a_places(elements.shape[2], elements.shape[3])
    matrix = np.zeros(
        (elements.shape[0], int(row.max()) + 1, int(column.max()) + 1), elements.dtype
    )
    matrix[:, row, column] = elements
    return matrix


def b_matrix(registers: Sequence[Array], kind: str) -> Array:
    """The 8-column B operands of all warps, shape [warps, K, 8], widened."""
    elements = widen(_fragment(registers, kind), kind)
    row, column = b_places(elements.shape[2], elements.shape[3])
    matrix = np.zeros((elements.shape[0], int(row.max()) + 1, 8), elements.dtype)
    matrix[:, row, column] = elements
    return matrix


def accumulator_matrix(registers: Array, columns: int) -> Array:
    """Accumulators [registers, threads] of all warps as [warps, 16 or 8, columns]."""
    count = len(registers)
    lanes = registers.T.reshape(-1, 32, count)
    row, column = accumulator_places(count)
    matrix = np.zeros((lanes.shape[0], int(row.max()) + 1, columns), registers.dtype)
    matrix[:, row, column] = lanes
    return matrix


def accumulator_registers(matrix: Array, count: int) -> Array:
    """The inverse of `accumulator_matrix`: shape [registers, threads]."""
    row, column = accumulator_places(count)
    return matrix[:, row, column].reshape(-1, count).T


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a·b + c, summed in float64 and rounded once; integers wrap."""
    product = np.matmul(a, b)
    if product.dtype.kind == "i":
        return (product + c).astype(np.int64).astype(np.int32)
    total = product + c.astype(np.float64)
    return total.astype(c.dtype) if c.dtype.itemsize >= 4 else narrow(total, c.dtype)
