"""Reductions and scans with any combine function."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.types import shape_of
from tilewright.ops.reduction.ir import CombineOp, ReduceOp, ScanOp
from tilewright.targets.mlir.emitter import RULES, Emitter, Tensor
from tilewright.targets.mlir.evaluate import Coord, Evaluator
from tilewright.targets.mlir.text import is_float_text, tensor_text, type_text, width_text

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
    """A `linalg.generic` that computes what it folds; the first element begins the fold."""
    code, axis = emitter.code, op.axis.value.data
    shape = shape_of(op.operands[0].type)
    kinds = [type_text(value.type) for value in op.operands]
    kept = tuple(extent for d, extent in enumerate(shape) if d != axis)
    neutral = _neutral(op)
    outs = [_start(emitter, kept, kind, neutral) for kind in kinds]
    inputs: dict[tuple[str, str, str], str] = {}
    accumulated = [f"%acc{i}" for i in range(len(kinds))]
    with code.capture(2) as body, emitter.scope():
        ev = Evaluator(emitter, inputs)
        coords = tuple(Coord(d) for d in range(len(shape)))
        new = [ev.at(value, coords) for value in op.operands]
        folded = combine(emitter, op, accumulated, new)
        if neutral is None:
            zero = code.index(0)
            is_first = code.value(f"arith.cmpi eq, {ev.index(coords[axis])}, {zero} : index")
            folded = _selected(emitter, op, is_first, new, folded)
        code.emit(f"linalg.yield {', '.join(folded)} : {', '.join(kinds)}")
    at = ", ".join(f"d{d}" for d in range(len(shape)) if d != axis)
    iterators = ["reduction" if d == axis else "parallel" for d in range(len(shape))]
    rows = [(out, at, kind) for out, kind in zip(outs, kinds, strict=True)]
    names = emitter.structured(inputs, rows, iterators, body, accumulated, shape)
    for result, name, out in zip(op.results, names, outs, strict=True):
        if kept:
            emitter.bind(result, name)
        else:
            emitter.bind(result, code.value(f"tensor.extract {name}[] : {out.type}"))


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
