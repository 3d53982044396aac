"""What the roots other than stores and folds do with one element or vector."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Attribute, Block, SSAValue

from tilewright.ir.types import element_of, i1, i32, shape_of, width_bits
from tilewright.ops.atomics.ir import AtomicOp
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.debug.ir import AssertOp, PrintOp
from tilewright.ops.indexing.ir import HistogramOp
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.forms import ELEMENTS, PREPARATIONS
from tilewright.targets.cpu.nests import masks
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.loop_order import chunks
from tilewright.targets.cpu.ops import StoreOp
from tilewright.targets.cpu.schedule.roots import Root, RootKind

Write = Callable[[], None]


def prepare(ev: Evaluator, root: Root) -> None:
    """What a root needs before the loops, as its op's class says."""
    prepare_op = PREPARATIONS.find(type(root.op))
    if root.kind is RootKind.ELEMENTS and prepare_op is not None:
        prepare_op(ev, root)


@PREPARATIONS.register(HistogramOp)
def _start_from_zero(ev: Evaluator, root: Root) -> None:
    buffer = ev.lowering.buffer(root.op.results[0])
    native = ev.lowering.machine.vector_bytes // 4
    saved = ev.lanes
    zero = ev.emit.constant(i32, 0)
    for start, count, lanes in chunks(buffer.shape[0], min(native, buffer.shape[0])):
        variable, _ = ev.emit.open_loop()
        pointer = ev.emit.advance(buffer.base, variable)
        ev.emit.effect(StoreOp, (pointer, ev.emit.splat(zero, lanes)))
        ev.emit.close_loop((start, start + count * lanes, lanes))
    ev.lanes = saved


def evaluate(ev: Evaluator, root: Root, coords: Coords) -> list[Write]:
    """Evaluate a root at `coords`; the effects are returned, to be done after all loads."""
    if root.kind is RootKind.MATERIALIZE:
        value = ev.element(root.values[0], coords)
        buffer = ev.lowering.buffer(root.values[0])
        return [lambda: ev.write_buffer(buffer, coords, value)]
    if root.kind is RootKind.COPY:
        return [_copy(ev, root, coords)]
    visit = ELEMENTS.find(type(root.op))
    assert visit is not None, root.kind
    return [lambda: visit(ev, root, coords)]


def _copy(ev: Evaluator, root: Root, coords: Coords) -> Write:
    assert root.target is not None
    value = ev.element(root.values[0], coords)
    buffer = ev.lowering.buffer(root.target)
    strides = root.strides or buffer.strides()
    return lambda: ev.write_strided(buffer, strides, root.offset, coords, value)


@ELEMENTS.register(*AtomicOp.__subclasses__())
def _atomic(ev: Evaluator, root: Root, coords: Coords) -> None:
    """One element of an atomic, behind a branch where it is masked."""
    op = root.op
    mask = getattr(op, "mask", None)
    operands = [v for v in op.operands if v is not mask]
    values = [ev.element(v, coords, False) for v in operands]

    def perform() -> None:
        types = [element_of(result.type) for result in op.results]
        done = ev.emit.effect(type(op), values, types, dict(op.properties), op.location)
        for result, value in zip(op.results, done.results, strict=True):
            if result.first_use is not None:
                ev.write_buffer(ev.lowering.buffer(result), coords, value)

    if mask is None or masks.is_all_true(mask):
        perform()
    else:
        guarded(ev, ev.element(mask, coords, False), perform)


def guarded(ev: Evaluator, condition: SSAValue, perform: Write) -> None:
    """Do something where a scalar condition holds."""
    emit, saved = ev.emit, ev.emit.pin
    emit.push(Block())
    emit.pin = len(emit.blocks) - 1
    perform()
    emit.effect(YieldOp, ())
    emit.pin = saved
    then = emit.pop()
    emit.push(Block())
    emit.effect(YieldOp, ())
    emit.choose(condition, (then, emit.pop()))


@ELEMENTS.register(PrintOp, AssertOp)
def _print(ev: Evaluator, root: Root, coords: Coords) -> None:
    op = root.op
    assert isinstance(op, PrintOp | AssertOp)
    values = [
        ev.element(v, coords if shape_of(v.type) == root.space else (), False) for v in op.operands
    ]
    _report(ev, op, values, [ev.index(coord) for coord in coords], root.space)


def print_scalar(ev: Evaluator, op: PrintOp | AssertOp) -> None:
    """Print or assert on scalars."""
    _report(ev, op, [ev.element(v, (), False) for v in op.operands], [], ())


def _report(
    ev: Evaluator,
    op: PrintOp | AssertOp,
    values: list[SSAValue],
    indices: list[SSAValue],
    shape: tuple[int, ...],
) -> None:
    if isinstance(op, PrintOp):
        properties: dict[str, Attribute] = {
            **op.properties,
            "shape": DenseArrayBase.from_list(i64, list(shape)),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(values), len(indices)]),
        }
        ev.emit.effect(cpu.PrintOp, (*values, *indices), (), properties, op.location)
        return
    condition = values[0]
    if op.mask is not None:
        inverted = ev.emit.integer("xori", values[1], ev.emit.constant(i1, 1))
        condition = ev.emit.integer("ori", condition, inverted)
    properties = {name: v for name, v in op.properties.items() if name in ("message", "kind")}
    ev.emit.effect(cpu.AssertOp, (condition, *indices), (), properties, op.location)


@ELEMENTS.register(HistogramOp)
def _count(ev: Evaluator, root: Root, coords: Coords) -> None:
    """One element of a histogram: values outside of the bins are ignored."""
    emit = ev.emit
    buffer = ev.lowering.buffer(root.op.results[0])
    position = ev.element(root.values[0], coords, False)
    if width_bits(position.type) < 32:
        position = emit.widen(position, i32)
    bound = emit.constant(position.type, buffer.shape[0])
    inside = emit.compare("ult", position, bound)
    if len(root.values) > 1 and not masks.is_all_true(root.values[1]):
        inside = emit.integer("andi", inside, ev.element(root.values[1], coords, False))

    def increment() -> None:
        pointer = emit.advance(buffer.base, position)
        old = emit.effect(cpu.LoadOp, (pointer,), (i32,), masks.NO_MASK).results[0]
        new = emit.integer("addi", old, emit.constant(i32, 1))
        emit.effect(StoreOp, (pointer, new))

    guarded(ev, inside, increment)
