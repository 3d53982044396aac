"""What a product in a loop fetches while it runs: the next step's B, at last its result's place.

Nothing but a fetch depends on these addresses, so a guess that is wrong costs little.
"""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.stride import Stride
from tilewright.ir.effects import global_access, is_free
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.regions import counter_of, receivers_of
from tilewright.ir.types import i64, shape_of
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.matmul.ir import DotOp
from tilewright.targets.cpu.nests.coordinates import constant_coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.schedule.bufferization import PackForm, single_use
from tilewright.targets.cpu.schedule.inline import is_tile, owner
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import reach

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
    source, counter = lowering.sources.get(form), counter_of(loop)
    if counter is None or load is None or source is None or not form.from_memory:
        return ()
    if counter.value.block is not op.parent:
        return ()
    if load.parent is not op.parent:
        return ()
    here, pitch = source
    is_across = form in lowering.bufferization.unpacked_transposes
    if not is_across and (form.transposed or not _has_rows(lowering, load)):
        return ()
    scalars = (counter.value, counter.end, counter.step)
    variable, end, step = (lowering.scalar(v) for v in scalars)
    depth = emit.constant(i64, shape_of(op.a.type)[1])
    following = emit.advance(here, depth if is_across else emit.integer("muli", pitch, depth))
    goes_on = emit.compare("slt", emit.integer("addi", variable, step), end)
    # A product across its source asks for rows as long as this one's, whatever lies there.
    found = None if is_across else _result_place(lowering, emit, op, here)
    last = found or (here, pitch)
    select = ELEMENTWISE["arith.select"]
    address = emit.pure(select, (goes_on, following, last[0]), here.type)
    return address, emit.pure(select, (goes_on, pitch, last[1]), pitch.type)


def _has_rows(lowering: Lowering, op: Operation) -> bool:
    stride = lowering.bufferization.structure.strides(op.operands[0])[1]
    return stride is not None and stride.as_int() == 1


def _result_place(lowering: Lowering, emit: Emitter, op: DotOp, like: SSAValue) -> Matrix | None:
    """Where a store after the loop writes the product, if that is known by now."""
    pointer = _stored_through(op.results[0])
    if pointer is None or len(shape_of(pointer.type)) != 2:
        return None
    pitch, step = lowering.bufferization.structure.strides(pointer)
    if pitch is None or step is None or step.as_int() != 1:
        return None
    if not _is_known(lowering, pointer) or not _has_known_factors(lowering, pitch):
        return None
    ev = Evaluator(lowering, emit)
    address = ev.element(pointer, constant_coords((0, 0)), False)
    return (address, polynomial(ev, pitch)) if address.type == like.type else None


def _stored_through(value: SSAValue) -> SSAValue | None:
    """The pointers through which what is made of `value` alone is stored in the end."""
    use = single_use(value)
    while use is not None:
        op = use.operation
        if isinstance(op, ElementwiseOp):
            use = single_use(op.results[0])
            continue
        results = [receiver for receiver in receivers_of(use) if isinstance(receiver, OpResult)]
        if not results:
            return _written_through(op, use.index)
        use = single_use(results[0])
    return None


def _written_through(op: Operation, index: int) -> SSAValue | None:
    """The pointers through which an op writes its operand number `index`: the one after them."""
    access = global_access(op)
    is_store = access is not None and access.writes and not access.reads and index == 1
    return access.value if access is not None and is_store else None


def _is_known(lowering: Lowering, tile: SSAValue) -> bool:
    """Whether a tile can be evaluated already: from scalars, and no materialised tile."""
    bufferization = lowering.bufferization
    for value in reach((tile,), bufferization.stored):
        if is_tile(value):
            made = owner(value)
            if bufferization.is_stored(value) or (made is not None and not is_free(made)):
                return False
        elif value not in lowering.scalars:
            return False
    return True


def _has_known_factors(lowering: Lowering, stride: Stride) -> bool:
    return all(factor in lowering.scalars for _, factors in stride.terms for factor in factors)
