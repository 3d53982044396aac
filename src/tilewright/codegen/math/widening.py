"""float32 forms of functions that are written for doubles."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.math.lanes import LaneCode, LaneValue

Routine = Callable[..., LaneValue]


def in_double(routine: Routine, of_floats: Routine | None = None) -> Routine:
    """`routine` of doubles, for floats too: computed in doubles and rounded once.

    `of_floats` takes its place where doubles hold floats, whose exponents are never extreme.
    Integer operands pass through. The result is within 0.51 of a last place wherever that of
    the doubles has 2^-30 of relative error.
    """

    def widened(code: LaneCode, *operands: LaneValue) -> LaneValue:
        if all(operand.element != "float" for operand in operands):
            return routine(code, *operands)
        wide = [
            operand.convert("fpext", "double") if operand.element == "float" else operand
            for operand in operands
        ]
        chosen = routine if of_floats is None else of_floats
        return chosen(code, *wide).convert("fptrunc", "float")

    return widened
