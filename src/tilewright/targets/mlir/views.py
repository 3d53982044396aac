"""A load or store as a view of its argument's memref, in numbers that the program has.

    %view = memref.reinterpret_cast %base to offset: [o], sizes: [64, 32], strides: [s, 1]

Where a tile starts is computed as the program does, wrap for wrap; how it goes on from there,
and where its mask ends, `analysis/affine` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.mask import Choice
from tilewright.analysis.affine.memref import MemrefView
from tilewright.ir.types import shape_of
from tilewright.support.dataclass import dataclass
from tilewright.targets.mlir.emitter import Emitter, Tensor
from tilewright.targets.mlir.evaluate import Coord, Evaluator
from tilewright.targets.mlir.text import INDEX, type_text


@dataclass(frozen=True)
class Part:
    """What of a tile is accessed along one dimension: indices from `start`, `size` of them.

    They are integers, or names of values of type index.
    """

    start: int | str
    size: int | str

    def is_whole(self, extent: int) -> bool:
        """Whether that is all of the dimension."""
        return self.start == 0 and self.size == extent


@dataclass(frozen=True)
class Frame:
    """How an access lies in memory: strides and parts by dimension, without where it starts.

    `rows` are the dimensions that wrap, are looked up or have `choices`: there is a view for each
    of their indices, of one element along them, where these hold.
    """

    pointers: SSAValue
    base: SSAValue
    shape: tuple[int, ...]
    strides: tuple[str, ...]
    parts: tuple[Part, ...]
    rows: tuple[int, ...]
    element: str
    choices: tuple[Choice, ...] = ()

    def is_whole(self) -> bool:
        """Whether all of the tile is accessed."""
        return not self.choices and all(
            p.is_whole(extent) for p, extent in zip(self.parts, self.shape, strict=True)
        )

    def parts_at(self, indices: Sequence[str]) -> tuple[Part, ...]:
        """The part of the tile that the view for some indices of `rows` has."""
        found = list(self.parts)
        for dim, index in zip(self.rows, indices, strict=True):
            found[dim] = Part(index, 1)
        return tuple(found)


def make_frame(
    emitter: Emitter,
    pointers: SSAValue,
    found: MemrefView,
    conditions: Sequence[SSAValue],
    positive: Sequence[Expression],
    element: str,
) -> Frame:
    """The frame of an access; what has to hold for all of it makes its parts empty."""
    code, shape, rows = emitter.code, shape_of(pointers.type), rows_of(found)
    strides = ["1" if d.size == 1 else stride_text(emitter, d.stride) for d in found.dims]
    holds = _all_hold(emitter, conditions, positive)
    parts = [_part(emitter, dim.size, dim.lower, dim.upper) for dim in found.dims]
    if holds is not None:
        first = next(d for d in range(len(shape)) if d not in rows)
        size = parts[first].size
        size = size if isinstance(size, str) else code.index(size)
        size = code.value(f"arith.select {holds}, {size}, {code.index(0)} : index")
        parts[first] = Part(parts[first].start, size)
    return Frame(
        *(pointers, found.base, shape, tuple(strides), tuple(parts), rows, element, found.choices)
    )


def rows_of(found: MemrefView) -> tuple[int, ...]:
    """The dimensions of which each index has a view of its own."""
    looked_up = () if found.looked_up is None else (found.looked_up[0],)
    chosen = (choice.dim for choice in found.choices)
    return tuple(sorted({*found.wraps, *looked_up, *chosen}))


def view_at(emitter: Emitter, frame: Frame, indices: Sequence[str] = ()) -> Tensor:
    """The part of memory that is accessed, at some indices of the frame's `rows`.

    It starts where the program's pointers do, computed as the program computes them.
    """
    code, coords = emitter.code, [Coord()] * len(frame.shape)
    shape, strides = list(frame.shape), list(frame.strides)
    for dim, index in zip(frame.rows, indices, strict=True):
        coords[dim], shape[dim], strides[dim] = Coord(name=index), 1, "1"
    offset = emitter.to_index(Evaluator(emitter).at(frame.pointers, tuple(coords)))
    type_ = strided_text(shape, strides, frame.element)
    name = code.value(
        f"memref.reinterpret_cast {emitter.base(frame.base)} to offset: [{offset}], "
        f"sizes: [{', '.join(map(str, shape))}], strides: [{', '.join(strides)}] : "
        f"memref<?x{frame.element}> to {type_}"
    )
    parts = [Part(0, 1) if d in frame.rows else part for d, part in enumerate(frame.parts)]
    if all(part.is_whole(extent) for part, extent in zip(parts, shape, strict=True)):
        return Tensor(name, type_)
    part_type = strided_text([part.size for part in parts], strides, frame.element)
    part = code.value(f"memref.subview {name}{part_text(parts)} : {type_} to {part_type}")
    return Tensor(part, part_type)


def strided_text(shape: Sequence[int | str], strides: Sequence[str], element: str) -> str:
    """The type of a view with an offset that is not known; sizes that are names neither."""
    dims = "".join(f"{'?' if isinstance(extent, str) else extent}x" for extent in shape)
    known = ", ".join("?" if stride.startswith("%") else stride for stride in strides)
    return f"memref<{dims}{element}, strided<[{known}], offset: ?>>"


def part_text(parts: Sequence[Part]) -> str:
    """Offsets, sizes and strides of a part, as `subview` and `extract_slice` take them."""
    starts = ", ".join(str(part.start) for part in parts)
    sizes = ", ".join(str(part.size) for part in parts)
    return f"[{starts}] [{sizes}] [{', '.join('1' for _ in parts)}]"


def stride_text(emitter: Emitter, stride: Expression) -> str:
    """A stride as a number, or as the name of a value."""
    known = stride.as_int()
    return str(known) if known is not None else expression(emitter, stride)


def expression(emitter: Emitter, value: Expression) -> str:
    """A sum of products of scalars as a value of type index."""
    code, total = emitter.code, ""
    for coefficient, factors in value.terms:
        product = code.index(coefficient) if coefficient != 1 or not factors else ""
        for factor in factors:
            name = emitter.to_index(emitter.scalar(factor), type_text(factor.type))
            product = code.value(f"arith.muli {product}, {name} : {INDEX}") if product else name
        total = code.value(f"arith.addi {total}, {product} : {INDEX}") if total else product
    return total or code.index(0)


def _all_hold(
    emitter: Emitter, conditions: Sequence[SSAValue], positive: Sequence[Expression]
) -> str | None:
    code, zero = emitter.code, emitter.code.index(0)
    parts = [emitter.scalar(condition) for condition in conditions]
    for number in positive:
        parts.append(code.value(f"arith.cmpi sgt, {expression(emitter, number)}, {zero} : index"))
    total: str | None = None
    for part in parts:
        total = part if total is None else code.value(f"arith.andi {total}, {part} : i1")
    return total


def _part(
    emitter: Emitter, extent: int, lower: Sequence[Expression], upper: Sequence[Expression]
) -> Part:
    """The indices between the greatest lower and the least upper bound, none below zero."""
    code = emitter.code
    zero, end = code.index(0), code.index(extent)
    start = ""
    for bound in lower:
        if (bound.as_int() or 0) > 0 or bound.as_int() is None:
            name = expression(emitter, bound)
            start = code.value(f"arith.maxsi {start or zero}, {name} : index")
    if start:
        start = code.value(f"arith.minsi {start}, {end} : index")
    stop = ""
    for bound in upper:
        known = bound.as_int()
        if known is None or known < extent:
            name = expression(emitter, bound)
            stop = code.value(f"arith.minsi {stop or end}, {name} : index")
    if not start and not stop:
        return Part(0, extent)
    stop = code.value(f"arith.maxsi {stop or end}, {start or zero} : index")
    if not start:
        return Part(0, stop)
    return Part(start, code.value(f"arith.subi {stop}, {start} : index"))
