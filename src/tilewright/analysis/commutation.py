"""Whether a combine function gives the same for both orders of the elements that it combines.

Folding elements that lie apart before those between them exchanges operands, which only a
function that commutes allows. The proof numbers the values of the region twice, once with the
two elements exchanged: equal numbers are equal values.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.effects import is_free
from tilewright.ops.reduction.ir import CombineOp

_INTEGER_OPS = ("addi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui")
_FLOAT_OPS = ("addf", "mulf", "maxnumf", "minnumf", "maximumf", "minimumf")
COMMUTATIVE_OPS = frozenset(f"arith.{name}" for name in (*_INTEGER_OPS, *_FLOAT_OPS))
"""Ops whose result is the same bits whichever operand comes first."""

# Predicates by the one that says the same of exchanged operands: those that look forwards.
_INTEGER_MIRRORS = {4: 2, 5: 3, 8: 6, 9: 7}
_FLOAT_MIRRORS = {2: 4, 3: 5, 9: 11, 10: 12}
_COMPARISONS = {"arith.cmpi": _INTEGER_MIRRORS, "arith.cmpf": _FLOAT_MIRRORS}
# Predicates that do not tell their operands apart.
_SYMMETRIC = {
    "arith.cmpi": frozenset((0, 1)),
    "arith.cmpf": frozenset((0, 1, 6, 7, 8, 13, 14, 15)),
}

Key = tuple[object, ...]


def commutes(op: CombineOp) -> bool:
    """Whether the combine function of `op` is known not to tell its two elements apart."""
    if "commutative" in op.properties:
        return True
    block = op.regions[0].block
    count = len(block.args) // 2
    numbers: dict[Key, int] = {}
    forwards = _results(block, range(2 * count), numbers)
    backwards = _results(block, [*range(count, 2 * count), *range(count)], numbers)
    return forwards is not None and forwards == backwards


def _results(block: Block, arguments: Sequence[int], numbers: dict[Key, int]) -> list[int] | None:
    """The numbers of what a region gives for numbered arguments; None where it cannot be told."""
    values: dict[SSAValue, int] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if op is block.last_op:
            break
        if op.regions or not is_free(op):
            return None
        for place, result in enumerate(op.results):
            key = (*_key(op, [values[value] for value in op.operands]), place)
            values[result] = numbers.setdefault(key, len(block.args) + len(numbers))
    end = block.last_op
    assert end is not None
    return [values[value] for value in end.operands]


def _key(op: Operation, operands: list[int]) -> Key:
    """What makes the value of an op, in one form for all that is the same."""
    attributes: frozenset[object] = frozenset(op.properties.items())
    if op.name in COMMUTATIVE_OPS:
        operands = sorted(operands)
    elif op.name in _COMPARISONS:
        predicate = op.properties["predicate"]
        assert isinstance(predicate, IntegerAttr)
        code = predicate.value.data
        if code in _COMPARISONS[op.name]:
            code, operands = _COMPARISONS[op.name][code], operands[::-1]
        elif code in _SYMMETRIC[op.name]:
            operands = sorted(operands)
        others = {name: value for name, value in op.properties.items() if name != "predicate"}
        attributes = frozenset((*others.items(), ("predicate", code)))
    types = tuple(result.type for result in op.results)
    return (op.name, attributes, types, *operands)
