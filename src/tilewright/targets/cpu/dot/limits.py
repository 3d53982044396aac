"""How much of a product anybody sees: the rows and columns that are stored, the k not masked.

    acc = dot(load(a, mask=k < K, other=0), load(b, mask=k < K, other=0), acc)   in a loop over k
    store(c, acc, mask=(rows < M) & (columns < N))

At an edge of C a tile has rows and columns that no store writes, and in the last step of k both
operands are zero from some k on. The microkernel is told where that begins: it neither computes
what is not seen nor adds zeros to a sum (which changes no bit: a sum that starts at +0 is never
-0). So operands need be in memory only as far as that, and what a mask hides or an index wraps
lies beyond. A limit may be larger than what is seen, never smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from tilewright.ir.effects import global_access, is_plain_read
from tilewright.ir.op import AccumulatingOp, ElementwiseOp
from tilewright.ir.regions import receivers_of
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.machine.model import MachineModel
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.targets.cpu.dot.packs import products_of
from tilewright.targets.cpu.dot.panels import Instruction
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.prefixes import surely_false_from
from tilewright.targets.cpu.nests.recompute import can_recompute, with_scalars_of
from tilewright.targets.cpu.schedule.bufferization import PackForm, fills_zeros
from tilewright.targets.cpu.schedule.inline import is_tile, owner
from tilewright.targets.cpu.schedule.lowering import Limits, Lowering
from tilewright.targets.cpu.schedule.materialization import operand_spec

# By definition: the dimensions of a matrix.
ROWS, COLUMNS = 0, 1
# Vectors of these machines are loaded as far as a mask says in one instruction.
_MASKED_LOADS = frozenset(("avx2", "avx512f"))
# Of halves and bytes that takes more; with the second of them fewer lanes than a register's, too.
_MASKED_BYTES, _LEAST_MASKED_BYTES = frozenset(("avx512bw", "avx512vl")), 4


def limits_of(lowering: Lowering, emit: Emitter, op: DotOp) -> Limits | None:
    """The limits of a product that reads its operands in place; None where it has none."""
    if not _takes_limits(lowering, op):
        return None
    shape = shape_of(op.result.type)
    k = shape_of(op.a.type)[1]
    seen = _seen(lowering, emit, op.result)
    depth = _depth(lowering, emit, op, k)
    if not seen and depth is None:
        return None
    rows, columns = (_clamped(emit, seen.get(dim, []), shape[dim]) for dim in (ROWS, COLUMNS))
    return Limits(rows, columns, emit.constant(i64, k) if depth is None else depth)


def row_limit(lowering: Lowering, emit: Emitter, op: DotOp) -> SSAValue | None:
    """How many rows are seen of a product whose operands are packed; None where all are.

    Blocks of rows behind them are left out: a row of half floats by a matrix, in a tile of 16,
    takes the time of one block of three.
    """
    rows = _seen(lowering, emit, op.result).get(ROWS)
    return _clamped(emit, rows, shape_of(op.result.type)[ROWS]) if rows else None


def there_is(
    lowering: Lowering, emit: Emitter, form: PackForm, load: LoadOp
) -> tuple[SSAValue, SSAValue] | None:
    """How many rows and columns of a loaded tile anybody can tell from zeros; None: all.

    What its own mask hides is zero, and what no store of the product sees may be. Two i64 from 1
    on: more is never left out than that.
    """
    if not _copies_prefixes(lowering.machine, form):
        return None
    shape = shape_of(load.result.type)
    extents: dict[int, list[SSAValue]] = {}
    mask = load.mask
    if mask is not None and fills_zeros(load) and can_recompute(lowering, mask):
        extents |= surely_false_from(with_scalars_of(lowering, emit, mask), mask)
    products = products_of(lowering, form)
    if len(products) == 1 and len(shape_of(products[0].result.type)) == len(shape):
        side = ROWS if form.role == "a" else COLUMNS
        seen = _seen(lowering, emit, products[0].result).get(side, ())
        dim = 1 - side if form.transposed else side
        extents[dim] = [*extents.get(dim, ()), *seen]
    if not any(extents.values()):
        return None
    rows, columns = (_clamped(emit, extents.get(dim, ()), shape[dim]) for dim in (ROWS, COLUMNS))
    return rows, columns


def _copies_prefixes(machine: MachineModel, form: PackForm) -> bool:
    """Whether vectors of a tile's elements are loaded under a mask in one instruction."""
    features = machine.enabled_features
    if storage_bytes(form.value.type) < _LEAST_MASKED_BYTES:
        return features >= _MASKED_BYTES
    return "avx512f" in features


def _takes_limits(lowering: Lowering, op: DotOp) -> bool:
    bufferization = lowering.bufferization
    forms = bufferization.operands[op]
    uses = sum(form in each for each in bufferization.operands.values() for form in forms)
    if uses != len(forms):
        return False
    spec = operand_spec(op, lowering.machine)
    if spec.is_amx and spec.has_amx_limits and forms[1] not in bufferization.unpacked_transposes:
        return all(_may_be_part(lowering, form, op) for form in forms)
    if forms[1] in bufferization.unpacked_transposes:
        return not spec.is_amx
    is_in_place = all(form in bufferization.unpacked for form in forms)
    return is_in_place and multiplies_prefixes(spec, lowering.machine)


def _may_be_part(lowering: Lowering, form: PackForm, op: DotOp) -> bool:
    """Whether an operand is copied from memory, beside its product, as far as it is there."""
    load = owner(form.value)
    if load is None or load.parent is not op.parent or not form.from_memory:
        return False
    return _copies_prefixes(lowering.machine, form)


def multiplies_prefixes(spec: DotSpec, machine: MachineModel) -> bool:
    """Whether the microkernel of a product may have limits on a machine."""
    if spec.is_amx:
        return spec.has_amx_limits and machine.enabled_features >= _MASKED_BYTES
    is_plain = spec.multiply.instruction is Instruction.FMA and spec.a_dtype == spec.b_dtype
    has_masks = not _MASKED_LOADS.isdisjoint(machine.enabled_features)
    return is_plain and spec.b_dtype in ("f32", "f64") and has_masks


def _clamped(emit: Emitter, extents: Sequence[SSAValue], size: int) -> SSAValue:
    """The least of some extents and a size, at least 1."""
    least = emit.constant(i64, size)
    for extent in extents:
        least = emit.integer("minsi", least, extent)
    return emit.integer("maxsi", least, emit.constant(i64, 1))


def _seen(lowering: Lowering, emit: Emitter, result: SSAValue) -> dict[int, list[SSAValue]]:
    """What bounds the elements of a product that its one store writes, by dimension."""
    store = _only_store(result)
    mask = None if store is None else getattr(store, "mask", None)
    if not isinstance(mask, SSAValue) or not can_recompute(lowering, mask):
        return {}
    return surely_false_from(with_scalars_of(lowering, emit, mask), mask)


def _only_store(result: SSAValue) -> Operation | None:
    """The store that alone sees a product's elements, each at its own index; None if there is more.

    Other products of the loop, or of the loop after it, may add to them.
    """
    stores: dict[Operation, None] = {}
    pending, known = [result], {result}
    while pending:
        for use in pending.pop().uses:
            found = _made_of(use.operation, use.index)
            received = receivers_of(use)
            if not found and not received:
                access = global_access(use.operation)
                if use.index != 1 or access is None or access.reads or not access.writes:
                    return None
                stores[use.operation] = None
            for value in (*found, *received):
                if value not in known:
                    known.add(value)
                    pending.append(value)
    return next(iter(stores)) if len(stores) == 1 else None


def _made_of(op: Operation, index: int) -> Sequence[SSAValue]:
    """The tiles that an op makes of an operand element by element."""
    if isinstance(op, ElementwiseOp):
        return [value for value in op.results if is_tile(value)]
    if isinstance(op, AccumulatingOp) and index == op.accumulator_index():
        return op.results
    return ()


def _depth(lowering: Lowering, emit: Emitter, op: DotOp, k: int) -> SSAValue | None:
    """How many k both operands have; all of them where they do not agree."""
    ends: list[SSAValue] = []
    for operand, dim in ((op.a, COLUMNS), (op.b, ROWS)):
        load = owner(operand)
        if load is None or not is_plain_read(load) or not fills_zeros(load):
            return None
        mask: object = getattr(load, "mask", None)
        # The second operand's mask may be computed behind the place of the first one.
        if not isinstance(mask, SSAValue) or not can_recompute(lowering, mask):
            return None
        extents = surely_false_from(with_scalars_of(lowering, emit, mask), mask).get(dim)
        if not extents:
            return None
        ends.append(_clamped(emit, extents, k))
    agree = emit.compare("eq", ends[0], ends[1])
    operands = (agree, ends[0], emit.constant(i64, k))
    return emit.pure(ELEMENTWISE["arith.select"], operands, i64)
