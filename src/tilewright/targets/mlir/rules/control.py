"""Loops, branches, and where a program stands in the grid."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilewright.ir.regions import ControlFlowOp
from tilewright.ir.types import is_pointer, shape_of
from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.debug.ir import AssumeOp, BarrierOp
from tilewright.ops.program.ir import GetNumProgramsOp, GetProgramIdOp
from tilewright.targets.mlir.emitter import IN_PLACE, RULES, Emitter
from tilewright.targets.mlir.text import tensor_text, type_text


def carried_type(type_: Attribute) -> str:
    """The type of a value that goes from one region to another."""
    shape = shape_of(type_)
    return tensor_text(shape, type_text(type_)) if shape else type_text(type_)


def handed_on(emitter: Emitter, value: SSAValue, receiver: SSAValue) -> str:
    """The name of a value in the form in which `receiver` takes it."""
    if shape_of(value.type):
        return emitter.tensor(value, receiver if is_pointer(value.type) else None)
    return emitter.scalar_as(value, receiver)


def _types(values: Sequence[SSAValue]) -> str:
    return ", ".join(carried_type(value.type) for value in values)


def _take(emitter: Emitter, values: Sequence[SSAValue]) -> list[str]:
    """New names for values that a region takes."""
    names = [emitter.code.new_name() for _ in values]
    for value, name in zip(values, names, strict=True):
        emitter.bind(value, name)
    return names


def _give(
    emitter: Emitter, word: str, values: Sequence[SSAValue], receivers: Sequence[SSAValue]
) -> None:
    """End a region with values for what takes them."""
    pairs = zip(values, receivers, strict=True)
    names = [handed_on(emitter, value, receiver) for value, receiver in pairs]
    _end(emitter, word, names, receivers)


def _end(emitter: Emitter, word: str, names: Sequence[str], receivers: Sequence[SSAValue]) -> None:
    given = ", ".join(names)
    emitter.code.emit(f"{word} {given} : {_types(receivers)}" if receivers else word)


def _in_place(emitter: Emitter, op: ForOp, end: Operation, carried: Sequence[str]) -> list[str]:
    """What a loop hands on: each tile in the tensor that carried it, so that no step allocates.

    Not where a tile may be in another one's tensor, as in a swap: there the passes that make
    buffers keep them apart.
    """
    pairs = zip(end.operands, op.results, strict=True)
    names = [handed_on(emitter, value, receiver) for value, receiver in pairs]
    values = [_made_in(value) for value in end.operands]
    rows = list(zip(names, values, op.body.block.args[1:], carried, strict=True))
    if not all(v is a or _is_new(v, a) for _, v, a, _ in rows if shape_of(v.type)):
        return names
    found: list[str] = []
    for given, value, argument, name in rows:
        kind = carried_type(argument.type)
        if shape_of(value.type) and value is not argument:
            given = emitter.code.value(
                f"bufferization.materialize_in_destination {given} in {name} : "
                f"({kind}, {kind}) -> {kind}"
            )
        found.append(given)
    return found


def _made_in(value: SSAValue) -> SSAValue:
    """The tile whose tensor a tile is in: what ops work in that write where they read."""
    owner = value.owner
    while (worked_in := IN_PLACE.find(type(owner))) is not None:
        value = worked_in(owner)
        owner = value.owner
    return value


def _is_new(value: SSAValue, argument: BlockArgument) -> bool:
    """Whether a tile is made anew in each step of the loop that carries `argument`."""
    owner = value.owner
    return not isinstance(owner, ControlFlowOp | Block) and owner.parent is argument.owner


def _bind_results(emitter: Emitter, op: Operation, names: Sequence[str]) -> None:
    for result, name in zip(op.results, names, strict=True):
        emitter.bind(result, name)


@RULES.register(ForOp)
def _for(emitter: Emitter, op: ForOp) -> None:
    code, (index, *carried) = emitter.code, op.body.block.args
    inits = [handed_on(emitter, v, r) for v, r in zip(op.iter_args, op.results, strict=True)]
    bounds = [emitter.scalar(bound) for bound in (op.lb, op.ub, op.step)]
    with code.capture(1) as lines, emitter.scope():
        names = _take(emitter, op.body.block.args)
        end = emitter.emit_block(op.body.block)
        _end(emitter, "scf.yield", _in_place(emitter, op, end, names[1:]), op.results)
    head = f"scf.for {names[0]} = {bounds[0]} to {bounds[1]} step {bounds[2]}"
    if carried:
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(names[1:], inits, strict=True))
        head += f" iter_args({pairs}) -> ({_types(op.results)})"
    kind = type_text(index.type)
    head += "" if kind == "index" else f" : {kind}"
    _bind_results(emitter, op, code.values(len(carried), f"{head} {{"))
    code.lines.extend(lines)
    code.close("}")


@RULES.register(IfOp)
def _if(emitter: Emitter, op: IfOp) -> None:
    code = emitter.code
    condition = emitter.scalar(op.cond)
    bodies = [_body_of(emitter, region.blocks[0], op) for region in op.regions if region.blocks]
    arrow = f" -> ({_types(op.results)})" if op.results else ""
    _bind_results(emitter, op, code.values(len(op.results), f"scf.if {condition}{arrow} {{"))
    code.lines.extend(bodies[0])
    for other in bodies[1:]:
        code.close("} else {")
        code.lines.extend(other)
    code.close("}")


def _body_of(emitter: Emitter, block: Block, op: Operation) -> list[str]:
    with emitter.code.capture(1) as lines, emitter.scope():
        end = emitter.emit_block(block)
        _give(emitter, "scf.yield", end.operands, op.results)
    return lines


@RULES.register(WhileOp)
def _while(emitter: Emitter, op: WhileOp) -> None:
    code = emitter.code
    tested, taken = op.before_region.block.args, op.after_region.block.args
    inits = [handed_on(emitter, v, r) for v, r in zip(op.arguments, tested, strict=True)]
    with code.capture(1) as test, emitter.scope():
        tested_names = _take(emitter, tested)
        end = emitter.emit_block(op.before_region.block)
        condition = emitter.scalar(end.operands[0])
        _give(emitter, f"scf.condition({condition})", end.operands[1:], op.results)
    with code.capture(1) as body, emitter.scope():
        taken_names = _take(emitter, taken)
        end = emitter.emit_block(op.after_region.block)
        _give(emitter, "scf.yield", end.operands, tested)
    pairs = ", ".join(f"{a} = {b}" for a, b in zip(tested_names, inits, strict=True))
    head = f"scf.while ({pairs}) : ({_types(tested)}) -> ({_types(op.results)}) {{"
    _bind_results(emitter, op, code.values(len(op.results), head))
    code.lines.extend(test)
    code.close("} do {")
    pairs = ", ".join(
        f"{n}: {carried_type(v.type)}" for n, v in zip(taken_names, taken, strict=True)
    )
    if taken:
        code.close(f"^bb0({pairs}):")
    code.lines.extend(body)
    code.close("}")


@RULES.register(GetProgramIdOp)
def _program_id(emitter: Emitter, op: GetProgramIdOp) -> None:
    emitter.bind(op.result, emitter.program_ids[op.axis.value.data])


@RULES.register(GetNumProgramsOp)
def _num_programs(emitter: Emitter, op: GetNumProgramsOp) -> None:
    emitter.bind(op.result, emitter.num_programs[op.axis.value.data])


@RULES.register(BarrierOp, AssumeOp)
def _nothing(emitter: Emitter, op: Operation) -> None:
    """A program runs in order, and what an author promises changes no result."""
