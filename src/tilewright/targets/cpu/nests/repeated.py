"""Loads whose elements stand for a few lanes each, as `x[j // 8]`: a short vector, repeated.

    x[j // 4]      x0 x0 x0 x0 x1 x1 x1 x1 x2 …      lanes / 4 elements are read

Where the first lane is the first of its element, which a test at run time tells, as many lanes as
the divisor share an element. Groups of packed numbers and their scales are read so.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilewright.ir.types import element_of, i1, vector_of, width_bits
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.powers_of_two import is_power_of_two
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.masks import segments
from tilewright.targets.cpu.nests.pieces import Cut, Pieces
from tilewright.targets.cpu.nests.spreading import shuffle


def repeated_cut(ev: Evaluator, pieces: Pieces) -> Cut | None:
    """The one cut of an address that moves to the next element there, after a few lanes."""
    if pieces.step or pieces.rise != 1 or len(pieces.cuts) != 1:
        return None
    (cut,) = pieces.cuts
    size = cut.size or 0
    return cut if cut.step == 1 and 1 < size < ev.lanes and is_power_of_two(size) else None


def starts_group(ev: Evaluator, cut: Cut) -> SSAValue:
    """An i1: the first lane is the first of its element, and no lane's dividend is negative."""
    emit = ev.emit
    x = ev.element(cut.dividend, cut.coords, False)
    last = (1 << width_bits(x.type) - 1) - 1
    assert cut.size is not None
    rest = emit.integer("andi", x, emit.constant(x.type, cut.size - 1))
    zero = emit.constant(x.type, 0)
    holds = emit.integer("andi", emit.compare("eq", rest, zero), emit.compare("sge", x, zero))
    bound = emit.constant(x.type, max(last - ev.lanes, 0))
    return emit.integer("andi", holds, emit.compare("sle", x, bound))


def load_repeated(
    ev: Evaluator, op: LoadOp, coords: Coords, size: int, masks: Sequence[SSAValue]
) -> SSAValue:
    """The vector whose lane i is element i // size; `masks`: its mask and other value, if any."""
    emit, lanes = ev.emit, ev.lanes
    pointer = ev.element(op.operands[0], coords, False)
    short = vector_of(element_of(op.result.type), lanes // size)
    wanted = [_any_of_group(ev, mask, size) for mask in masks[:1]]
    sizes = segments(1, len(wanted), 0)
    loaded = emit.read(cpu.LoadOp, (pointer, *wanted), short, sizes, op.location)
    value = shuffle(emit, loaded, loaded, [lane // size for lane in range(lanes)])
    if len(masks) > 1:
        value = emit.pure(SelectOp, (masks[0], value, masks[1]), value.type)
    return value


def _any_of_group(ev: Evaluator, mask: SSAValue, size: int) -> SSAValue:
    """For each group of `size` lanes, a power of two, whether a mask lets one of them through."""
    emit, lanes = ev.emit, ev.lanes
    none = emit.splat(emit.constant(i1, 0), lanes)
    distance = 1
    while distance < size:
        later = shuffle(emit, mask, none, [lane + distance for lane in range(lanes)])
        mask = emit.integer("ori", mask, later)
        distance *= 2
    return shuffle(emit, mask, mask, list(range(0, lanes, size)))
