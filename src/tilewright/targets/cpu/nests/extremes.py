"""Maxima and minima that ignore NaN, in loops over vectors: one instruction long.

    maxnum(a, x) = x > a ? x : a, unless a is NaN

Asking whether the accumulator is NaN makes each step wait for three instructions instead of one.
So it starts from -inf, and is never NaN. What is lost is a row of NaN alone, whose maximum
is NaN: the least number is kept too, off the path, and where the maximum is still -inf and the
minimum still inf, no number was seen.

Measured on Zen 5, 2026-11-23, one thread, busy: 1000 f32 in the cache 131 to 16 ns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.types import element_of, f32, f64, i1, shape_of, vector_of
from tilewright.ops.elementwise.comparisons import FLOAT_PREDICATES, CmpFOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.targets.cpu.nests import combining
from tilewright.targets.cpu.nests.emitter import Emitter, code

Values = list[SSAValue]
_KINDS = {"arith.maxnumf": "ogt", "arith.minnumf": "olt"}
_OPPOSITE = {"ogt": "olt", "olt": "ogt"}
_START = {"ogt": -math.inf, "olt": math.inf}


def initial(
    emit: Emitter, op: Operation, lanes: int, elements: Sequence[Attribute]
) -> Values | None:
    """What a loop that folds `op` starts from; None where the function has no identity."""
    kind = _kind(op)
    if kind is None:
        return combining.initial(emit, op, lanes, elements)
    starts = (_START[kind], _START[_OPPOSITE[kind]])
    return [emit.splat(emit.constant(elements[0], value), lanes) for value in starts]


def num_accumulators(op: Operation) -> int:
    """How many values a loop that folds `op` carries."""
    return len(op.results) if _kind(op) is None else 2


def advance(emit: Emitter, op: Operation, carried: Values, taken: Values) -> Values:
    """The accumulators with one more vector."""
    kind = _kind(op)
    if kind is None:
        return combining.apply_combine(emit, op, carried, taken)
    (value,), (best, worst) = taken, carried
    return [_chosen(emit, kind, value, best), _chosen(emit, _OPPOSITE[kind], value, worst)]


def finish(emit: Emitter, op: Operation, carried: Values) -> Values:
    """What the accumulators say at the end."""
    kind = _kind(op)
    if kind is None:
        return carried
    best = carried[0]
    element, lanes = element_of(best.type), _lanes(best)
    starts = (_START[kind], _START[_OPPOSITE[kind]])
    is_empty = [
        _compare(emit, "oeq", value, emit.splat(emit.constant(element, start), lanes))
        for value, start in zip(carried, starts, strict=True)
    ]
    nothing = emit.integer("andi", *is_empty)
    nan = emit.splat(emit.constant(element, math.nan), lanes)
    return [emit.pure(SelectOp, (nothing, nan, best), best.type)]


def _kind(op: Operation) -> str | None:
    """Which numbers are preferred, where a function is a maximum or minimum that ignores NaN."""
    neutral = combining.identity(op)
    if neutral is None or not math.isnan(neutral[0]):
        return None
    return _KINDS[next(iter(op.regions[0].block.ops)).name] if _is_plain(op) else None


def _is_plain(op: Operation) -> bool:
    """Whether elements are compared in the type that they have."""
    return element_of(op.operands[0].type) in (f32, f64)


def _chosen(emit: Emitter, kind: str, value: SSAValue, other: SSAValue) -> SSAValue:
    return emit.pure(SelectOp, (_compare(emit, kind, value, other), value, other), other.type)


def _compare(emit: Emitter, kind: str, left: SSAValue, right: SSAValue) -> SSAValue:
    properties = {"predicate": code(FLOAT_PREDICATES.index(kind))}
    lanes = _lanes(right)
    operands = (emit.splat(left, lanes), right)
    return emit.pure(CmpFOp, operands, vector_of(i1, lanes), properties)


def _lanes(value: SSAValue) -> int:
    return shape_of(value.type)[0] if shape_of(value.type) else 1
