"""Vectors, arrays and structs."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.program import Compute, Translated, rule
from tilewright.interp.simt.syntax import Constant, Instruction
from tilewright.interp.simt.values import Value


@rule("extractelement")
def _extract_element(fn: Translated, op: Instruction) -> Compute:
    read, v = fn.machine.read, fn.use(op.operands[0])
    if isinstance(op.operands[1], Constant):
        index = int(str(op.operands[1].value or 0))
        return lambda: read(v)[index]
    i = fn.use(op.operands[1])
    threads = fn.machine.thread_ids

    def compute() -> Value:
        vector = read(v)
        return vector[read(i).astype(np.int64) % len(vector), threads]

    return compute


@rule("insertelement")
def _insert_element(fn: Translated, op: Instruction) -> Compute:
    read = fn.machine.read
    v, x, i = (fn.use(operand) for operand in op.operands)
    threads = fn.machine.thread_ids

    def compute() -> Value:
        vector = read(v).copy()
        vector[read(i).astype(np.int64), threads] = read(x)
        return vector

    return compute


@rule("shufflevector")
def _shuffle(fn: Translated, op: Instruction) -> Compute:
    read, a, b = fn.machine.read, fn.use(op.operands[0]), fn.use(op.operands[1])
    assert isinstance(op.type, t.VectorType)
    mask = op.operands[2]
    chosen = [0] * op.type.count
    if isinstance(mask, Constant) and isinstance(mask.value, tuple):
        lanes = [getattr(lane, "value", 0) for lane in mask.value]
        chosen = [int(lane or 0) for lane in lanes]
    return lambda: np.concatenate([read(a), read(b)])[chosen]


@rule("extractvalue")
def _extract_value(fn: Translated, op: Instruction) -> Compute:
    values, v, indices = fn.machine.values, fn.use(op.operands[0]), op.indices

    def compute() -> Value | None:
        value = values[v]
        for index in indices:
            assert isinstance(value, tuple)
            value = value[index]
        return value

    return compute


@rule("insertvalue")
def _insert_value(fn: Translated, op: Instruction) -> Compute:
    values, indices = fn.machine.values, op.indices
    v, x = fn.use(op.operands[0]), fn.use(op.operands[1])

    def compute() -> Value:
        return _replaced(values[v], indices, values[x])

    return compute


def _replaced(value: Value | None, indices: tuple[int, ...], member: Value | None) -> Value:
    assert isinstance(value, tuple) and member is not None
    new = member if len(indices) == 1 else _replaced(value[indices[0]], indices[1:], member)
    return (*value[: indices[0]], new, *value[indices[0] + 1 :])
