"""What a product in a loop fetches while it runs: the next step's B, at last its result's place.

Nothing but a fetch depends on these addresses, so a guess that is wrong costs little.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.stride import Stride
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import i64, shape_of
from tilewright.ops.control_flow import ForOp, YieldOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.targets.cpu.nests.coordinates import constant_coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.schedule.bufferization import PackForm, single_use
from tilewright.targets.cpu.schedule.inline import is_tile, owner
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import reach

_SIGNED_LT = 2
Matrix = tuple[SSAValue, SSAValue]
"""An address and the elements from row to row."""


def fetch_address(
    lowering: Lowering, emit: Emitter, op: DotOp, form: PackForm
) -> Matrix | tuple[()]:
    """Where the next iteration's B lies if it continues this one; in the last, the result.

    The place of a result is far away when a store comes to it: 256 KiB of lines to be read
    before they are overwritten.
    """
    loop, load = op.parent_op(), owner(form.value)
    source = lowering.sources.get(form)
    if not isinstance(loop, ForOp) or not isinstance(load, LoadOp) or source is None:
        return ()
    if load.parent is not op.parent or form.transposed or not _has_rows(lowering, load):
        return ()
    here, pitch = source
    variable, end, step = (
        lowering.scalar(v) for v in (loop.body.block.args[0], loop.operands[1], loop.operands[2])
    )
    rows = emit.constant(i64, shape_of(form.value.type)[0])
    following = emit.advance(here, emit.integer("muli", pitch, rows))
    goes_on = emit.compare(_SIGNED_LT, emit.integer("addi", variable, step), end)
    last = _result_place(lowering, emit, op, here) or (here, pitch)
    select = ELEMENTWISE["arith.select"]
    address = emit.pure(select, (goes_on, following, last[0]), here.type)
    return address, emit.pure(select, (goes_on, pitch, last[1]), pitch.type)


def _has_rows(lowering: Lowering, op: LoadOp) -> bool:
    stride = lowering.bufferization.structure.strides(op.operands[0])[1]
    return stride is not None and stride.as_int() == 1


def _result_place(lowering: Lowering, emit: Emitter, op: DotOp, like: SSAValue) -> Matrix | None:
    """Where a store after the loop writes the product, if that is known by now."""
    store = _store_of(op.results[0])
    if store is None or len(shape_of(store.operands[0].type)) != 2:
        return None
    pointer = store.operands[0]
    pitch, step = lowering.bufferization.structure.strides(pointer)
    if pitch is None or step is None or step.as_int() != 1:
        return None
    if not _is_known(lowering, pointer) or not _has_known_factors(lowering, pitch):
        return None
    ev = Evaluator(lowering, emit)
    address = ev.element(pointer, constant_coords((0, 0)), False)
    return (address, polynomial(ev, pitch)) if address.type == like.type else None


def _store_of(value: SSAValue) -> StoreOp | None:
    """The store at the end of the values that are made of `value` alone."""
    use = single_use(value)
    while use is not None:
        op: Operation = use.operation
        if isinstance(op, StoreOp):
            return op if use.index == 1 else None
        if isinstance(op, YieldOp):
            loop = op.parent_op()
            if not isinstance(loop, ForOp):
                return None
            use = single_use(loop.results[use.index])
        elif isinstance(op, ForOp) and use.index > 2:
            use = single_use(op.results[use.index - 3])
        elif isinstance(op, ElementwiseOp):
            use = single_use(op.results[0])
        else:
            return None
    return None


def _is_known(lowering: Lowering, tile: SSAValue) -> bool:
    """Whether a tile can be evaluated already: from scalars, and no materialised tile."""
    bufferization = lowering.bufferization
    for value in reach((tile,), bufferization.stored):
        if is_tile(value):
            if bufferization.is_stored(value) or isinstance(owner(value), LoadOp):
                return False
        elif value not in lowering.scalars:
            return False
    return True


def _has_known_factors(lowering: Lowering, stride: Stride) -> bool:
    return all(factor in lowering.scalars for _, factors in stride.terms for factor in factors)
