"""Products of a loop whose last step stores the sum where the program wants it.

    acc = 0
    for k in …: acc = dot(a, b, acc)        first step: nothing is added, the zeros are not made
    store(c, acc)                           last step: the sums go to c; the store has nothing to do

Or rounded, where the products are AMX's: `store(c, acc.to(bf16))`.

Why: zeros are written and read back, a sum is read and stored once more at the end: a quarter of
the time of a product of 128x128 that is 128 deep, half of one that is 17 deep. Whether the place
of the result is what a product may write to (rows, apart from the operands, not hidden by the
store's mask) is known only in the last step, so a flag in the arena says afterwards whether it
was done; else the store does it (`dot/direct.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.effects import is_free
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.regions import counter_of, receivers_of
from tilewright.ir.types import element_of, shape_of
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import ForOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import StoreOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.amx_tiles import TILE_ROWS
from tilewright.targets.cpu.dot.limits import multiplies_prefixes
from tilewright.targets.cpu.schedule.block_steps import Step
from tilewright.targets.cpu.schedule.bufferization import Bufferization, is_zero, single_use
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.lowering import DirectStore
from tilewright.targets.cpu.schedule.materialization import operand_spec
from tilewright.targets.cpu.schedule.roots import RootKind

# By definition: the types that an f32 is rounded to in one instruction, or a few.
_ROUNDED = ("bf16", "f16")
_ROUND = ELEMENTWISE["arith.truncf"]

Chain = tuple[tuple[ForOp, ...], tuple[DotOp, ...], SSAValue]
"""Loops one after the other, their products, and the argument in which the first has the sum."""


@dataclass(frozen=True, eq=False)
class Found:
    """A direct store of a planned block: the steps of its zeros and of the store."""

    fill: Step
    store: Step
    direct: DirectStore


def find_direct_stores(
    bufferization: Bufferization, machine: MachineModel, steps: Sequence[Step]
) -> list[Found]:
    """The direct stores of a planned block."""
    every = (_found(bufferization, steps[: number + 1]) for number in range(len(steps)))
    return [
        found
        for found in every
        if found is not None
        and all(
            _can_redirect(bufferization, machine, op, found.direct.store)
            for op in found.direct.products
        )
    ]


def will_store_directly(product: DotOp) -> bool:
    """Whether a product on AMX is one of those that will store their sum, as T0 is.

    Where something comes between after all, they start from zeros that are written for them.
    """
    store = _store_of(product)
    if store is None or store.parent is None or not _has_rows(AffineTiles(), store):
        return False
    chain = _chain(store, {op: op for op in store.parent.walk() if isinstance(op, DotOp)})
    if chain is None or product not in chain[1] or not _has_many_rows(product):
        return False
    between = chain[0][0].next_op
    while between is not None and between is not store:
        if between not in chain[0] and not is_free(between):
            return False
        between = between.next_op
    return str(element_of(store.value.type)) in ("f32", "i32", *_ROUNDED)


def _has_many_rows(product: DotOp) -> bool:
    """Whether a product on AMX has rows for two registers.

    Sums of fewer stay in the first-level cache, and a product of few rows may read B where it lies.
    """
    return shape_of(product.result.type)[0] > TILE_ROWS


def _store_of(product: DotOp) -> StoreOp | None:
    """The store that alone uses what is made of a sum, element by element, handed on by loops."""
    use = single_use(product.result)
    while use is not None:
        op = use.operation
        if isinstance(op, StoreOp):
            return op if use.index == 1 else None
        results = op.results if isinstance(op, ElementwiseOp) else receivers_of(use)
        outside = [value for value in results if isinstance(value, OpResult)]
        use = single_use(outside[0]) if outside else None
    return None


def _found(bufferization: Bufferization, steps: Sequence[Step]) -> Found | None:
    """What the last of some steps stores, if it is the sum of products."""
    roots = steps[-1].roots
    if len(roots) != 1 or roots[0].kind is not RootKind.STORE:
        return None
    store = roots[0].op
    assert isinstance(store, StoreOp), store.name
    if not _has_rows(bufferization.structure, store):
        return None
    chain = _chain(store, {op: op for op in bufferization.operands})
    if chain is None:
        return None
    rest = list(reversed(steps[:-1]))
    pending = list(reversed(chain[0]))
    for number, step in enumerate(rest):
        if step.op is not None and pending and step.op is pending[0]:
            pending.pop(0)
        elif step.op is None or not is_free(step.op):
            return None
        if not pending:
            return _with_zeros(bufferization, rest[number + 1 :], steps[-1], chain)
    return None


def _with_zeros(
    bufferization: Bufferization, before: Sequence[Step], last: Step, chain: Chain
) -> Found | None:
    """What is found if the step before the loops makes their zeros."""
    store, (loops, products, argument) = last.roots[0].op, chain
    assert isinstance(store, StoreOp)
    if not before or not _fills(bufferization, before[0], argument):
        return None
    direct = DirectStore(store, loops, products, before[0].roots[0])
    return Found(before[0], last, direct)


def _fills(bufferization: Bufferization, step: Step, argument: SSAValue) -> bool:
    """Whether a step does nothing but to write zeros to where a loop's sum lives."""
    if len(step.roots) != 1 or step.roots[0].kind is not RootKind.COPY:
        return False
    (root,) = step.roots
    assert root.target is not None
    is_there = bufferization.key(root.target) is bufferization.key(argument)
    return is_there and is_zero(root.values[0]) and root.strides is None


def _has_rows(structure: AffineTiles, store: StoreOp) -> bool:
    """Whether a store writes a matrix whose rows are contiguous."""
    if len(shape_of(store.ptr.type)) != 2:
        return False
    pitch, step = structure.strides(store.ptr)
    if pitch is None or pitch.jumps or step is None or step.jumps:
        return False
    return step.as_int() == 1


def _chain(store: StoreOp, known: Mapping[Operation, DotOp]) -> Chain | None:
    """The loops and products whose sum, from zero, is all that a store stores."""
    loops: list[ForOp] = []
    products: list[DotOp] = []
    value = argument = _unrounded(store.value)
    while not is_zero(value):
        loop = owner(value)
        if loop is None or counter_of(loop) is None or not value.has_one_use():
            return None
        assert isinstance(loop, ForOp), loop.name
        index = loop.results.index(value)  # pyright: ignore[reportArgumentType]
        product, argument = _summed(loop, index, known), loop.body.block.args[index + 1]
        if loop.parent is not store.parent or product is None:
            return None
        loops.insert(0, loop)
        products.insert(0, product)
        value = loop.iter_args[index]
    return (tuple(loops), tuple(products), argument) if loops else None


def _unrounded(value: SSAValue) -> SSAValue:
    """The sum that a stored value is, rounded to a narrower type."""
    op = owner(value)
    if op is not None and type(op) is _ROUND and value.has_one_use():
        return op.operands[0]
    return value


def _summed(loop: ForOp, index: int, known: Mapping[Operation, DotOp]) -> DotOp | None:
    """The one product that a loop adds to what it carries, and that nothing else sees."""
    body = loop.body.block
    end, argument = body.last_op, body.args[index + 1]
    assert end is not None
    made = owner(end.operands[index])
    product = None if made is None else known.get(made)
    if product is None or product.c is not argument or product.parent is not body:
        return None
    if not (argument.has_one_use() and product.result.has_one_use()):
        return None
    return product if _ends_with(product, end) else None


def _ends_with(product: DotOp, end: Operation) -> bool:
    """Whether nothing behind a product reads or writes memory."""
    following = product.next_op
    while following is not None and following is not end:
        if not is_free(following):
            return False
        following = following.next_op
    return True


def _can_redirect(
    bufferization: Bufferization, machine: MachineModel, product: DotOp, store: StoreOp
) -> bool:
    """Whether the microkernel of a product may write elsewhere than it adds to.

    Both operands are read where the user has them, and it may be told its limits. On AMX B was
    packed before, A may have been, and sums are rounded to the type of the result.
    """
    spec = operand_spec(product, machine)
    if str(element_of(product.result.type)) != spec.acc_dtype:
        return False
    stored = str(element_of(store.value.type))
    if spec.is_amx:
        return _has_many_rows(product) and (stored == spec.acc_dtype or stored in _ROUNDED)
    if stored != spec.acc_dtype:
        return False
    forms = bufferization.operands[product]
    if any(form not in bufferization.unpacked for form in forms):
        return False
    if isinstance(product.c, BlockArgument) and product.c in bufferization.pitches:
        return False
    return multiplies_prefixes(spec, machine)
