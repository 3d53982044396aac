"""Combine functions of reductions and scans: applied to vectors, folded, their identities."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import element_of, shape_of, vector_of, width_bits
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.ops import ReduceLanesOp, YieldOp

Values = list[SSAValue]

_IDEMPOTENT = frozenset(
    f"arith.{name}" for name in ("andi", "ori", "maxsi", "minsi", "maxui", "minui")
)
_LEAST = {"arith.maxnumf": -math.inf, "arith.minnumf": math.inf}
"""What maxima and minima that ignore NaN take without a trace, where there is a number at all."""


def apply_combine(emit: Emitter, op: Operation, left: Values, right: Values) -> Values:
    """The combine function of `op` on scalars or vectors of equal lanes."""
    block = op.regions[0].block
    lanes = max((shape_of(v.type)[0] for v in (*left, *right) if shape_of(v.type)), default=1)
    arguments = [emit.splat(value, lanes) for value in (*left, *right)]
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for inner in block.ops:
        if inner is block.last_op:
            return [mapping.get(v, v) for v in inner.operands]
        if inner.regions:
            copy = inner.clone(mapping)
            emit.append(copy)
            mapping.update(zip(inner.results, copy.results, strict=True))
            continue
        operands = [mapping[v] for v in inner.operands]
        wide = lanes if operands and any(shape_of(v.type) for v in operands) else 1
        operands = [emit.splat(v, wide) for v in operands]
        result = vector_of(element_of(inner.results[0].type), wide)
        properties = dict(inner.properties)
        value = emit.pure(type(inner), operands, result, properties, inner.location)
        mapping[inner.results[0]] = value
    raise AssertionError("a combine region ends with a terminator")


def reduce_lanes(emit: Emitter, op: Operation, values: Values, in_order: bool = False) -> Values:
    """Each vector folded to one scalar by the combine function of `op`.

    Unless it is `in_order`, lanes that lie apart are combined first, which is cheaper.
    """
    if not shape_of(values[0].type):
        return values
    source = op.regions[0].block
    block = Block(arg_types=[argument.type for argument in source.args])
    mapping: dict[SSAValue, SSAValue] = dict(zip(source.args, block.args, strict=True))
    for inner in source.ops:
        if inner is source.last_op:
            operands = [mapping.get(v, v) for v in inner.operands]
            block.add_op(build(YieldOp, operands, location=inner.location))
        else:
            copy = inner.clone(mapping)
            mapping.update(zip(inner.results, copy.results, strict=True))
            block.add_op(copy)
    types = [element_of(value.type) for value in values]
    properties = {"in_order": UnitAttr()} if in_order else {}
    folded = build(ReduceLanesOp, values, types, properties, (Region(block),), emit.location)
    emit.append(folded)
    return list(folded.results)


def identity(op: Operation) -> list[int | float] | None:
    """The neutral element of a combine function that is one known op; None otherwise."""
    block = op.regions[0].block
    body = list(block.ops)
    if len(body) != 2 or len(block.args) != 2 or body[1].operands[0] is not body[0].results[0]:
        return None
    if set(body[0].operands) != set(block.args):
        return None
    value = _neutral(body[0], block.args[0].type)
    return None if value is None else [value]


def settles(op: Operation, number: int | float) -> bool:
    """Whether a fold by `op` that takes `number` many times may as well begin with it.

    It may with the neutral element and with what an idempotent function takes. A sum may with 0:
    no sum with a 0 in it is -0, and no other sum depends on how many there are. A maximum that
    ignores NaN may with -inf.
    """
    neutral = identity(op)
    if neutral is None:
        return False
    kind = next(iter(op.regions[0].block.ops)).name
    return number == neutral[0] or kind in _IDEMPOTENT or _LEAST.get(kind) == number


def _neutral(op: Operation, element: Attribute) -> int | float | None:
    bits = width_bits(element)
    low = -(1 << (bits - 1))
    fastmath = op.properties.get("fastmath")
    no_nan = fastmath is not None and ("nnan" in str(fastmath) or "fast>" in str(fastmath))
    ignores_nan = -math.inf if no_nan else math.nan
    table: dict[str, int | float] = {
        "arith.addf": -0.0,
        "arith.mulf": 1.0,
        "arith.maximumf": -math.inf,
        "arith.minimumf": math.inf,
        "arith.maxnumf": ignores_nan,
        "arith.minnumf": -ignores_nan,
        "arith.addi": 0,
        "arith.muli": 1,
        "arith.andi": -1,
        "arith.ori": 0,
        "arith.xori": 0,
        "arith.maxsi": low,
        "arith.minsi": -low - 1,
        "arith.maxui": 0,
        "arith.minui": -1,
    }
    return table.get(op.name)


def initial(
    emit: Emitter, op: Operation, lanes: int, elements: Sequence[Attribute]
) -> Values | None:
    """Accumulators that hold the identity, or None when the function has none we know."""
    neutral = identity(op)
    if neutral is None:
        return None
    pairs = zip(neutral, elements, strict=True)
    return [emit.splat(emit.constant(element, value), lanes) for value, element in pairs]
