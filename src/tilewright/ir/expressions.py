"""Pure ops as expressions: which of them compute the same from the same operands."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.effects import is_free

Form = tuple[object, ...]


def form_of(op: Operation) -> Form | None:
    """What an op computes of its operands: equal forms give equal results; None: it does more.

    Two that are annotated in different ways are not one.
    """
    if op.regions or not op.results or not is_free(op):
        return None
    given = (tuple(op.properties.items()), tuple(op.attributes.items()))
    return (type(op), given, tuple(r.type for r in op.results))
