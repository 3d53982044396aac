"""What an atomic does where no other code of the process runs any: a load, an operation, a store.

The elements of a vector lie side by side, so each has an address of its own; elements at computed
addresses, of which several may be one, are updated one after the other.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.ops.atomics.ir import AtomicRmwOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.access import mask_value
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.elements import guarded
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.masks import segments

# The op that computes what each kind stores; an exchange stores its operand.
_COMBINATIONS = {
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
    "add": "arith.addi",
    "fadd": "arith.addf",
    "max": "arith.maxsi",
    "min": "arith.minsi",
    "umax": "arith.maxui",
    "umin": "arith.minui",
}


def update(ev: Evaluator, op: Operation, coords: Coords) -> None:
    """Read, combine and write one element or a vector of adjacent ones."""
    assert isinstance(op, AtomicRmwOp)
    is_wide = ev.lanes > 1
    value = ev.emit.splat(ev.element(op.value, coords, is_wide), ev.lanes)
    pointer = ev.element(op.ptr, coords, False)
    mask = mask_value(ev, op.mask, coords, is_wide)
    if is_wide or mask is None:
        _replace(ev, op, coords, (pointer, value, mask))
    else:
        guarded(ev, mask, lambda: _replace(ev, op, coords, (pointer, value, None)))


def _replace(
    ev: Evaluator,
    op: AtomicRmwOp,
    coords: Coords,
    operands: tuple[SSAValue, SSAValue, SSAValue | None],
) -> None:
    """The load, the operation and the store; the result, if somebody wants it."""
    pointer, value, mask = operands
    emit, masks = ev.emit, () if mask is None else (mask,)
    properties = segments(1, len(masks), 0)
    loaded = emit.effect(cpu.LoadOp, (pointer, *masks), (value.type,), properties, op.location)
    old = loaded.results[0]
    name = _COMBINATIONS.get(op.kind_name())
    new = value if name is None else emit.pure(ELEMENTWISE[name], (old, value), value.type)
    emit.effect(cpu.StoreOp, (pointer, new, *masks), location=op.location)
    if op.result.first_use is not None:
        ev.write_buffer(ev.lowering.buffer(op.result), coords, old)
