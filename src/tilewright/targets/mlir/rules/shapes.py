"""Ops that move elements of tiles, look them up or count them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilewright.ir.types import is_pointer, shape_of
from tilewright.ops.creation.ir import UnsplatOp
from tilewright.ops.indexing.ir import GatherOp, HistogramOp
from tilewright.ops.shape.ir import CatOp, FlipOp, ReshapeOp
from tilewright.targets.mlir.emitter import IN_PLACE, RULES, Emitter, Tensor
from tilewright.targets.mlir.evaluate import Coord, Coords, Evaluator
from tilewright.targets.mlir.text import tensor_text, type_text


def _tensor_of(emitter: Emitter, value: SSAValue, receiver: SSAValue) -> str:
    return emitter.tensor(value, receiver if is_pointer(value.type) else None)


@RULES.register(UnsplatOp)
def _unsplat(emitter: Emitter, op: UnsplatOp) -> None:
    coords = (Coord(),) * len(shape_of(op.src.type))
    emitter.bind(op.result, Evaluator(emitter).at(op.src, coords))


@IN_PLACE.register(ReshapeOp)
def _reshaped_tile(op: ReshapeOp) -> SSAValue:
    return op.src


@RULES.register(ReshapeOp)
def _reshape(emitter: Emitter, op: ReshapeOp) -> None:
    """By way of one dimension: what is collapsed and expanded again moves nothing."""
    source, target = shape_of(op.src.type), shape_of(op.result.type)
    name = _tensor_of(emitter, op.src, op.result)
    element = type_text(op.result.type)
    total = 1
    for extent in source:
        total *= extent
    flat = tensor_text((total,), element)
    if len(source) > 1:
        group = f"[[{', '.join(map(str, range(len(source))))}]]"
        type_ = tensor_text(source, element)
        name = emitter.code.value(f"tensor.collapse_shape {name} {group} : {type_} into {flat}")
    if len(target) > 1:
        group = f"[[{', '.join(map(str, range(len(target))))}]]"
        shape = ", ".join(map(str, target))
        name = emitter.code.value(
            f"tensor.expand_shape {name} {group} output_shape [{shape}] : {flat} into "
            f"{tensor_text(target, element)}"
        )
    emitter.bind(op.result, name)


@RULES.register(CatOp)
def _cat(emitter: Emitter, op: CatOp) -> None:
    shape, element = shape_of(op.result.type), type_text(op.result.type)
    name, type_ = emitter.empty(shape, element), tensor_text(shape, element)
    start, rest = 0, ", 0" * (len(shape) - 1)
    for side in (op.lhs, op.rhs):
        part = shape_of(side.type)
        source = _tensor_of(emitter, side, op.result)
        name = emitter.code.value(
            f"tensor.insert_slice {source} into {name}[{start}{rest}] "
            f"[{', '.join(map(str, part))}] [{', '.join('1' for _ in part)}] : "
            f"{tensor_text(part, element)} into {type_}"
        )
        start += part[0]
    emitter.bind(op.result, name)


@RULES.register(FlipOp)
def _flip(emitter: Emitter, op: FlipOp) -> None:
    shape, element = shape_of(op.result.type), type_text(op.result.type)
    axis, source = op.axis.value.data, emitter.tensor(op.src)

    def compute(ev: Evaluator, coords: Coords) -> str:
        last = ev.code.index(shape[axis] - 1)
        name = ev.code.value(f"arith.subi {last}, {ev.index(coords[axis])} : index")
        return ev.read(source, shape, element, _replaced(coords, axis, name))

    emitter.bind(op.result, emitter.generic(shape, element, compute))


def _replaced(coords: Coords, axis: int, name: str) -> Coords:
    return (*coords[:axis], Coord(name=name), *coords[axis + 1 :])


@RULES.register(GatherOp)
def _gather(emitter: Emitter, op: GatherOp) -> None:
    shape, element = shape_of(op.result.type), type_text(op.result.type)
    axis, source = op.axis.value.data, _tensor_of(emitter, op.src, op.result)
    kind = type_text(op.indices.type)

    def compute(ev: Evaluator, coords: Coords) -> str:
        name = emitter.to_index(ev.at(op.indices, coords), kind)
        return ev.read(source, shape_of(op.src.type), element, _replaced(coords, axis, name))

    emitter.bind(op.result, emitter.generic(shape, element, compute))


@RULES.register(HistogramOp)
def _histogram(emitter: Emitter, op: HistogramOp) -> None:
    code, kind = emitter.code, type_text(op.src.type)
    bins = shape_of(op.result.type)
    counts = Tensor(emitter.filled(bins, "i32", code.constant("i32", 0)), tensor_text(bins, "i32"))

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        ev, coords = Evaluator(emitter), emitter.row(indices)
        number = ev.at(op.src, coords)
        wide = number if kind == "i64" else code.value(f"arith.extsi {number} : {kind} to i64")
        limit = code.constant("i64", bins[0])
        is_counted = code.value(f"arith.cmpi ult, {wide}, {limit} : i64")
        if op.mask is not None:
            is_counted = code.value(f"arith.andi {is_counted}, {ev.at(op.mask, coords)} : i1")
        at = code.value(f"arith.select {is_counted}, {wide}, {code.constant('i64', 0)} : i64")
        at = emitter.to_index(at)
        old = code.value(f"tensor.extract {carried[0]}[{at}] : {counts.type}")
        one = code.value(f"arith.extui {is_counted} : i1 to i32")
        new = code.value(f"arith.addi {old}, {one} : i32")
        return [code.value(f"tensor.insert {new} into {carried[0]}[{at}] : {counts.type}")]

    emitter.bind(op.result, emitter.nest(shape_of(op.src.type), body, [counts])[0])
