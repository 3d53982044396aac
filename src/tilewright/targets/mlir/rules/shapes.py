"""Ops that move elements of tiles, look them up, order or count them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilewright.ir.types import element_of, i1, is_float, is_pointer, shape_of
from tilewright.ops.creation.ir import UnsplatOp
from tilewright.ops.indexing.ir import GatherOp, HistogramOp, SortOp
from tilewright.ops.shape.ir import CatOp, FlipOp, ReshapeOp
from tilewright.targets.mlir.emitter import RULES, Emitter, Tensor
from tilewright.targets.mlir.evaluate import Coord, Coords, Evaluator
from tilewright.targets.mlir.rules.elements import widened
from tilewright.targets.mlir.text import tensor_text, type_text


def _tensor_of(emitter: Emitter, value: SSAValue, receiver: SSAValue) -> str:
    return emitter.tensor(value, receiver if is_pointer(value.type) else None)


@RULES.register(UnsplatOp)
def _unsplat(emitter: Emitter, op: UnsplatOp) -> None:
    coords = (Coord(),) * len(shape_of(op.src.type))
    emitter.bind(op.result, Evaluator(emitter).at(op.src, coords))


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


@RULES.register(SortOp)
def _sort(emitter: Emitter, op: SortOp) -> None:
    """Every element goes to its rank: how many come before it, those equal to it by place."""
    code, shape = emitter.code, shape_of(op.src.type)
    element, source = type_text(op.result.type), emitter.tensor(op.src)
    ranks = _ranks(emitter, op, source)
    inits = [
        Tensor(emitter.empty(shape, kind), tensor_text(shape, kind)) for kind in (element, "i32")
    ]

    def body(indices: list[str], carried: list[str]) -> Sequence[str]:
        at = ", ".join(indices)
        number = code.value(f"tensor.extract {source}[{at}] : {inits[0].type}")
        rank = code.value(f"tensor.extract {ranks}[{at}] : {inits[1].type}")
        to = ", ".join((*indices[:-1], emitter.to_index(rank, "i32")))
        place = code.value(f"arith.index_cast {indices[-1]} : index to i32")
        pairs = zip((number, place), carried, inits, strict=True)
        return [code.value(f"tensor.insert {n} into {c}[{to}] : {t.type}") for n, c, t in pairs]

    found = emitter.nest(shape, body, inits)
    emitter.bind(op.result, found[0])
    emitter.bind(op.indices, found[1])


def _ranks(emitter: Emitter, op: SortOp, source: str) -> str:
    code, shape, rank = emitter.code, shape_of(op.src.type), len(shape_of(op.src.type))
    element, type_ = type_text(op.src.type), tensor_text(shape_of(op.src.type), "i32")
    outer = ", ".join(f"d{d}" for d in range(rank))
    other = ", ".join(f"d{d}" for d in (*range(rank - 1), rank))
    out = Tensor(emitter.filled(shape, "i32", code.constant("i32", 0)), type_)
    inputs = {
        (source, tensor_text(shape, element), outer): "%own",
        (source, tensor_text(shape, element), other): "%other",
    }
    with code.capture(2) as body:
        own, others = (code.value(f"linalg.index {d} : index") for d in (rank - 1, rank))
        is_before = code.value(f"arith.cmpi ult, {others}, {own} : index")
        comes = _precedes(emitter, op, "%other", "%own", is_before)
        one = code.value(f"arith.extui {comes} : i1 to i32")
        total = code.value(f"arith.addi %out0, {one} : i32")
        code.emit(f"linalg.yield {total} : i32")
    iterators = [*["parallel"] * rank, "reduction"]
    return emitter.structured(inputs, [(out, outer, "i32")], iterators, body)[0]


def _precedes(emitter: Emitter, op: SortOp, other: str, own: str, is_before: str) -> str:
    """Whether an element comes before another one; `is_before` says where they stand."""
    code, type_ = emitter.code, element_of(op.src.type)
    left, right = (own, other) if op.descending is not None else (other, own)
    if is_float(type_):
        left, right = (widened(code, type_, side) for side in (left, right))
        kind = "f32" if type_text(type_) == "i8" else type_text(type_)
        nans = [code.value(f"arith.cmpf uno, {s}, {s} : {kind}") for s in (left, right)]
        # A NaN on the right is greater than every number; two of them are equal.
        less = code.value(f"arith.cmpf ult, {left}, {right} : {kind}")
        is_number = code.value(f"arith.xori {nans[0]}, {code.constant('i1', 1)} : i1")
        less = code.value(f"arith.andi {less}, {is_number} : i1")
        equal = code.value(f"arith.cmpf oeq, {left}, {right} : {kind}")
        both = code.value(f"arith.andi {nans[0]}, {nans[1]} : i1")
        equal = code.value(f"arith.ori {equal}, {both} : i1")
    else:
        kind = type_text(type_)
        predicate = "ult" if type_ == i1 else "slt"
        less = code.value(f"arith.cmpi {predicate}, {left}, {right} : {kind}")
        equal = code.value(f"arith.cmpi eq, {left}, {right} : {kind}")
    tied = code.value(f"arith.andi {equal}, {is_before} : i1")
    return code.value(f"arith.ori {less}, {tied} : i1")
