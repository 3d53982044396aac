"""Reductions and scans with any combine function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.ir.types import shape_of
from tilewright.ops.reduction.ir import CombineOp, ReduceOp, ScanOp
from tilewright.targets.mlir.emitter import RULES, Emitter, Tensor
from tilewright.targets.mlir.evaluate import Coord, Evaluator, dims_of
from tilewright.targets.mlir.text import is_float_text, tensor_text, type_text, width_text

# Source: error analysis: n terms in a row lose up to n halves of a last place, in √n lanes of √n
# terms up to 2 √n. Below this extent that is no gain worth a second loop.
_LONG = 32
_LEAST, _GREATEST = float("-inf"), float("inf")
# What changes nothing: of a sum of floats the negative zero, of `maxnumf` a NaN.
_NEUTRAL_FLOATS = {
    "arith.addf": -0.0, "arith.mulf": 1.0, "arith.maximumf": _LEAST, "arith.minimumf": _GREATEST,
    "arith.maxnumf": float("nan"), "arith.minnumf": float("nan"),
}  # fmt: skip


def _neutral(op: CombineOp) -> int | float | None:
    """The neutral element of a combine function that is one op."""
    body = list(op.regions[0].block.ops)
    if len(body) != 2 or len(op.operands) != 1:
        return None
    first, arguments = body[0], list(op.regions[0].block.args)
    if list(first.operands) not in (arguments, arguments[::-1]):
        return None
    if list(body[1].operands) != list(first.results):
        return None
    kind = type_text(op.operands[0].type)
    if is_float_text(kind):
        return _NEUTRAL_FLOATS.get(first.name)
    bits = width_text(kind)
    integers = {
        "arith.addi": 0, "arith.ori": 0, "arith.xori": 0, "arith.muli": 1, "arith.andi": -1,
        "arith.maxsi": -(1 << (bits - 1)), "arith.minsi": (1 << (bits - 1)) - 1,
        "arith.maxui": 0, "arith.minui": -1,
    }  # fmt: skip
    return integers.get(first.name)


def _is_rounded(op: CombineOp) -> bool:
    """Whether a fold is a sum or a product of floats, whose order is free but shows."""
    is_float = is_float_text(type_text(op.operands[0].type))
    first = op.regions[0].block.first_op
    return (
        is_float
        and _neutral(op) is not None
        and first is not None
        and (first.name in ("arith.addf", "arith.mulf"))
    )


def combine(
    emitter: Emitter, op: CombineOp, left: Sequence[str], right: Sequence[str]
) -> list[str]:
    """The values of the combine function of accumulated and new ones."""
    block = op.regions[0].block
    with emitter.scope():
        for argument, name in zip(block.args, (*left, *right), strict=True):
            emitter.bind(argument, name)
        end = emitter.emit_block(block)
        return [emitter.scalar(value) for value in end.operands]


def _selected(
    emitter: Emitter, op: CombineOp, condition: str, a: Sequence[str], b: Sequence[str]
) -> list[str]:
    kinds = [type_text(value.type) for value in op.operands]
    return [
        emitter.code.value(f"arith.select {condition}, {x}, {y} : {kind}")
        for x, y, kind in zip(a, b, kinds, strict=True)
    ]


@RULES.register(ReduceOp)
def _reduce(emitter: Emitter, op: ReduceOp) -> None:
    """A `linalg.generic` that computes what it folds; a sum of floats is one of partial sums.

    What rounds keeps the places of a long sum if it is folded by lanes: element `i` goes to lane
    `i % count`, and the lanes are folded in order.
    """
    shape, axis = shape_of(op.operands[0].type), op.axis.value.data
    folds_lanes = shape[axis] >= _LONG and _is_rounded(op)
    coords = [Coord(d) for d in range(len(shape))]
    extents, iterators = list(shape), ["parallel"] * len(shape)
    iterators[axis] = "reduction"
    if folds_lanes:
        count = 1 << (shape[axis].bit_length() // 2)
        coords[axis] = Coord(axis, lanes=(count, len(shape)))
        extents[axis] //= count
        extents.append(count)
        iterators.append("parallel")
    names = _fold(
        emitter, op, extents, iterators, lambda ev: [ev.at(v, tuple(coords)) for v in op.operands]
    )
    if folds_lanes:
        names = _fold_lanes(emitter, op, extents, axis, names[0])
    kept = tuple(extent for d, extent in enumerate(shape) if d != axis)
    for result, name, value in zip(op.results, names, op.operands, strict=True):
        type_ = tensor_text(kept, type_text(value.type))
        found = name if kept else emitter.code.value(f"tensor.extract {name}[] : {type_}")
        emitter.bind(result, found)


def _fold_lanes(
    emitter: Emitter, op: ReduceOp, extents: Sequence[int], axis: int, lanes: str
) -> list[str]:
    """The fold of partial sums, which lie along the last dimension of the tensor `lanes`."""
    shape = tuple(extent for d, extent in enumerate(extents) if d != axis)
    kind = type_text(op.operands[0].type)
    iterators = [*["parallel"] * (len(shape) - 1), "reduction"]
    return _fold(
        emitter, op, shape, iterators, lambda ev: [ev.read(lanes, shape, kind, dims_of(len(shape)))]
    )


def _fold(
    emitter: Emitter,
    op: ReduceOp,
    extents: Sequence[int],
    iterators: Sequence[str],
    compute: Callable[[Evaluator], list[str]],
) -> list[str]:
    """One fold over a loop's index space; without a neutral element its first element begins."""
    code, neutral = emitter.code, _neutral(op)
    kinds = [type_text(value.type) for value in op.operands]
    dims = [d for d, kind in enumerate(iterators) if kind == "parallel"]
    outs = [_start(emitter, tuple(extents[d] for d in dims), kind, neutral) for kind in kinds]
    inputs: dict[tuple[str, str, str], str] = {}
    accumulated = [f"%acc{i}" for i in range(len(kinds))]
    with code.capture(2) as body, emitter.scope():
        ev = Evaluator(emitter, inputs)
        new = compute(ev)
        folded = combine(emitter, op, accumulated, new)
        if neutral is None:
            zero, place = code.index(0), ev.index(Coord(list(iterators).index("reduction")))
            is_first = code.value(f"arith.cmpi eq, {place}, {zero} : index")
            folded = _selected(emitter, op, is_first, new, folded)
        code.emit(f"linalg.yield {', '.join(folded)} : {', '.join(kinds)}")
    at = ", ".join(f"d{d}" for d in dims)
    rows = [(out, at, kind) for out, kind in zip(outs, kinds, strict=True)]
    return emitter.structured(inputs, rows, iterators, body, accumulated, extents)


def _start(emitter: Emitter, shape: tuple[int, ...], kind: str, neutral: object) -> Tensor:
    type_ = tensor_text(shape, kind)
    if isinstance(neutral, int | float):
        return Tensor(emitter.filled(shape, kind, emitter.code.constant(kind, neutral)), type_)
    # What stands there is read, and dropped by the first element.
    zero = emitter.code.constant(kind, 0)
    return Tensor(emitter.filled(shape, kind, zero), type_)


@RULES.register(ScanOp)
def _scan(emitter: Emitter, op: ScanOp) -> None:
    """Loops in order, which carry the prefix of each block that the element stands in."""
    code, axis = emitter.code, op.axis.value.data
    shape = shape_of(op.operands[0].type)
    kinds = [type_text(value.type) for value in op.operands]
    sources = [emitter.tensor(value) for value in op.operands]
    outer = [extent for d, extent in enumerate(shape) if d != axis]
    results = [Tensor(emitter.empty(shape, k), tensor_text(shape, k)) for k in kinds]
    sizes = op.block_sizes()
    count = len(kinds)
    starts = [Tensor(code.constant(kind, 0), kind) for _ in sizes for kind in kinds]

    def along(indices: list[str], tensors: list[str]) -> Sequence[str]:
        def step(index: list[str], carried: list[str]) -> Sequence[str]:
            place = index[0]
            if op.is_reverse():
                last = code.index(shape[axis] - 1)
                place = code.value(f"arith.subi {last}, {place} : index")
            at = ", ".join((*indices[:axis], place, *indices[axis:]))
            new = [
                code.value(f"tensor.extract {s}[{at}] : {r.type}")
                for s, r in zip(sources, results, strict=True)
            ]
            tensors_, prefixes = carried[:count], carried[count:]
            levels = [prefixes[i : i + count] for i in range(0, len(prefixes), count)]
            levels, total = _advance(emitter, op, index[0], sizes, levels, new)
            written = [
                code.value(f"tensor.insert {v} into {t}[{at}] : {r.type}")
                for v, t, r in zip(total, tensors_, results, strict=True)
            ]
            return [*written, *(name for level in levels for name in level)]

        carried = [Tensor(n, r.type) for n, r in zip(tensors, results, strict=True)]
        return emitter.nest([shape[axis]], step, [*carried, *starts])[:count]

    for result, name in zip(op.results, emitter.nest(outer, along, results), strict=True):
        emitter.bind(result, name)


def _advance(
    emitter: Emitter,
    op: ScanOp,
    index: str,
    sizes: Sequence[int],
    levels: Sequence[Sequence[str]],
    new: Sequence[str],
) -> tuple[list[list[str]], list[str]]:
    """The prefixes after one more element, and the element's result.

    Level 0 is the prefix within the innermost block. Level n is the total of the blocks of level
    n - 1 that have ended in the current block of level n; the outer ones are combined first.
    """
    code = emitter.code
    starts = [_is_within(emitter, index, size, 1) for size in sizes]
    folded = combine(emitter, op, levels[0], new)
    following = [_selected(emitter, op, starts[0], new, folded)]
    ended = list(levels[0])
    for number in range(1, len(sizes)):
        last = code.value(f"arith.subi {index}, {code.index(1)} : index")
        is_first = _is_within(emitter, last, sizes[number], sizes[number - 1])
        joined = combine(emitter, op, levels[number], ended)
        joined = _selected(emitter, op, is_first, ended, joined)
        following.append(_selected(emitter, op, starts[number - 1], joined, levels[number]))
        ended = joined
    return following, _with_carry(emitter, op, index, sizes, following)


def _with_carry(
    emitter: Emitter, op: ScanOp, index: str, sizes: Sequence[int], levels: Sequence[Sequence[str]]
) -> list[str]:
    """The innermost prefix behind what stands before its blocks, the outermost first."""
    code = emitter.code
    carry, has_carry = list(levels[-1]), code.constant("i1", 0)
    for number in range(len(sizes) - 1, 0, -1):
        is_empty = _is_within(emitter, index, sizes[number], sizes[number - 1])
        joined = combine(emitter, op, carry, levels[number])
        joined = _selected(emitter, op, has_carry, joined, levels[number])
        carry = _selected(emitter, op, is_empty, carry, joined)
        is_filled = code.value(f"arith.xori {is_empty}, {code.constant('i1', 1)} : i1")
        has_carry = code.value(f"arith.ori {has_carry}, {is_filled} : i1")
    if len(sizes) == 1:
        return list(levels[0])
    return _selected(emitter, op, has_carry, combine(emitter, op, carry, levels[0]), levels[0])


def _is_within(emitter: Emitter, index: str, size: int, part: int) -> str:
    """Whether an index is among the first `part` of its block of `size`."""
    code = emitter.code
    rest = code.value(f"arith.remui {index}, {code.index(size)} : index")
    return code.value(f"arith.cmpi ult, {rest}, {code.index(part)} : index")
