"""Sorting: a bitonic network in loops, which exchange elements of one tensor in place.

For n elements it takes log₂ n (log₂ n + 1) / 2 rounds of n / 2 exchanges. Round (k, j) looks at
every pair of elements whose places differ in the bit of 2^j alone, and leaves the lesser one first
where the bit of 2^k is clear in their places, else last. Elements come with the place that they
had, so that no two of them are equal and the order of equal values stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilewright.ir.types import element_of, i1, is_float, shape_of
from tilewright.ops.indexing.ir import SortOp
from tilewright.targets.mlir.emitter import IN_PLACE, RULES, Emitter, Tensor
from tilewright.targets.mlir.rules.elements import widened
from tilewright.targets.mlir.text import INDEX, Code, tensor_text, type_text


@IN_PLACE.register(SortOp)
def _sorted_tile(op: SortOp) -> SSAValue:
    return op.src


@RULES.register(SortOp)
def _sort(emitter: Emitter, op: SortOp) -> None:
    code, shape = emitter.code, shape_of(op.src.type)
    kinds = (type_text(op.result.type), "i32")
    places = emitter.generic(
        shape,
        "i32",
        lambda ev, coords: ev.code.value(
            f"arith.index_cast {ev.index(coords[-1])} : {INDEX} to i32"
        ),
    )
    types = [tensor_text(shape, kind) for kind in kinds]
    names = (emitter.tensor(op.src), places)
    inits = [Tensor(name, type_) for name, type_ in zip(names, types, strict=True)]
    num_rounds = shape[-1].bit_length() - 1
    one = code.index(1)

    def rows(outer: list[str], carried: list[str]) -> Sequence[str]:
        def blocks(block: list[str], carried: list[str]) -> Sequence[str]:
            # Of blocks of 2^k elements, each is in order behind this.
            k = code.value(f"arith.addi {block[0]}, {one} : {INDEX}")

            def steps(step: list[str], carried: list[str]) -> Sequence[str]:
                j = code.value(f"arith.subi {block[0]}, {step[0]} : {INDEX}")

                def pairs(pair: list[str], carried: list[str]) -> Sequence[str]:
                    return _exchange(emitter, op, outer, (k, j, pair[0]), carried)

                return emitter.nest([shape[-1] // 2], pairs, _as_tensors(carried, types))

            return emitter.nest([k], steps, _as_tensors(carried, types))

        return emitter.nest([num_rounds], blocks, _as_tensors(carried, types))

    found = emitter.nest(shape[:-1], rows, inits)
    emitter.bind(op.result, found[0])
    emitter.bind(op.indices, found[1])


def _as_tensors(names: Sequence[str], types: Sequence[str]) -> list[Tensor]:
    return [Tensor(name, type_) for name, type_ in zip(names, types, strict=True)]


def _exchange(
    emitter: Emitter,
    op: SortOp,
    outer: Sequence[str],
    numbers: tuple[str, str, str],
    carried: Sequence[str],
) -> list[str]:
    """One pair of elements and their places, in the order that their block asks for."""
    code, (k, j, pair) = emitter.code, numbers
    shape, kind = shape_of(op.src.type), type_text(op.result.type)
    first, second = _places(code, j, pair)
    at = [", ".join((*outer, place)) for place in (first, second)]
    (values, value_type), (places, place_type) = (
        (name, tensor_text(shape, k)) for name, k in zip(carried, (kind, "i32"), strict=True)
    )
    own = [code.value(f"tensor.extract {values}[{a}] : {value_type}") for a in at]
    old = [code.value(f"tensor.extract {places}[{a}] : {place_type}") for a in at]
    was_before = code.value(f"arith.cmpi ult, {old[1]}, {old[0]} : i32")
    comes = _precedes(emitter, op, own[1], own[0], was_before)
    # The lesser one last, in every other block of 2^k elements.
    bit = code.value(f"arith.shrui {first}, {k} : {INDEX}")
    is_reversed = code.value(f"arith.trunci {_as_i32(code, bit)} : i32 to i1")
    swaps = code.value(f"arith.xori {comes}, {is_reversed} : i1")
    found: list[str] = []
    for tensor, type_, sides, element in (
        (values, value_type, own, kind),
        (places, place_type, old, "i32"),
    ):
        name = tensor
        for place, (kept, other) in zip(at, (sides, sides[::-1]), strict=True):
            chosen = code.value(f"arith.select {swaps}, {other}, {kept} : {element}")
            name = code.value(f"tensor.insert {chosen} into {name}[{place}] : {type_}")
        found.append(name)
    return found


def _places(code: Code, j: str, pair: str) -> tuple[str, str]:
    """Where the elements of pair number `pair` stand, among those that differ in bit `j`."""
    one = code.index(1)
    distance = code.value(f"arith.shli {one}, {j} : {INDEX}")
    below = code.value(f"arith.subi {distance}, {one} : {INDEX}")
    low = code.value(f"arith.andi {pair}, {below} : {INDEX}")
    high = code.value(f"arith.subi {pair}, {low} : {INDEX}")
    start = code.value(f"arith.shli {high}, {one} : {INDEX}")
    first = code.value(f"arith.addi {start}, {low} : {INDEX}")
    return first, code.value(f"arith.addi {first}, {distance} : {INDEX}")


def _as_i32(code: Code, index: str) -> str:
    return code.value(f"arith.index_cast {index} : {INDEX} to i32")


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
