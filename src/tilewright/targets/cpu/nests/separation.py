"""A test at run time that the elements of a pointer tile lie at addresses of their own."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.analysis.affine.stride import Stride
from tilewright.analysis.separation import fixed_span, moving_strides
from tilewright.ir.types import i1, i64
from tilewright.targets.cpu.nests.evaluate import Evaluator


def are_apart(ev: Evaluator, ptr: SSAValue) -> SSAValue:
    """An i1: no two elements of the tile share an address.

    Strides known only now are taken to grow in the order of the dimensions or against it, which
    row-major and column-major tiles do; any other order counts as not apart.
    """
    emit = ev.emit
    moving = moving_strides(ev.lowering.bufferization.structure, ptr)
    assert moving is not None
    known = [(stride, stride.as_int(), extent) for stride, extent in moving]
    span = fixed_span([(abs(step), extent) for _, step, extent in known if step is not None])
    assert span is not None
    unknown = [(stride, extent) for stride, step, extent in known if step is None]
    if not unknown:
        return emit.constant(i1, 1)
    growing = _is_growing(ev, unknown[::-1], span)
    if len(unknown) == 1:
        return growing
    return emit.integer("ori", growing, _is_growing(ev, unknown, span))


def _is_growing(ev: Evaluator, steps: list[tuple[Stride, int]], span: int) -> SSAValue:
    """An i1: each stride exceeds what those before it span, beginning with `span`."""
    emit = ev.emit
    total, growing = emit.constant(i64, span), emit.constant(i1, 1)
    for index, (stride, extent) in enumerate(steps):
        value = polynomial(ev, stride)
        size = emit.integer("maxsi", value, emit.integer("subi", emit.constant(i64, 0), value))
        exceeds = emit.compare("sgt", size, total)
        growing = exceeds if index == 0 else emit.integer("andi", growing, exceeds)
        total = emit.integer(
            "addi", total, emit.integer("muli", size, emit.constant(i64, extent - 1))
        )
    return growing


def polynomial(ev: Evaluator, stride: Stride, factor: int = 1) -> SSAValue:
    """The value of a stride times `factor`, as i64."""
    emit = ev.emit
    total: SSAValue | None = None
    for coefficient, factors in stride.terms:
        term: SSAValue | None = None
        for scalar in factors:
            wide = emit.widen(ev.lowering.scalar(scalar))
            term = wide if term is None else emit.integer("muli", term, wide)
        scale = coefficient * factor
        if term is None:
            term = emit.constant(i64, scale)
        elif scale != 1:
            term = emit.integer("muli", term, emit.constant(i64, scale))
        total = term if total is None else emit.integer("addi", total, term)
    return emit.constant(i64, 0) if total is None else total
