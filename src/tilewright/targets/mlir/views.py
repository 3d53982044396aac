"""A load or store as a view of its argument's memref, in numbers that the program has.

    %view = memref.reinterpret_cast %base to offset: [o], sizes: [64, 32], strides: [s, 1]

Where a tile starts is computed as the program does, wrap for wrap; how it goes on from there,
and where its mask ends, `analysis/affine` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilewright.analysis.affine.expression import Expression
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
class View:
    """A view of a tile's memory and its parts: `memref` has the tile's shape."""

    memref: Tensor
    strides: tuple[str, ...]
    parts: tuple[Part, ...]
    shape: tuple[int, ...]

    def is_whole(self) -> bool:
        """Whether all of the tile is accessed."""
        return all(p.is_whole(extent) for p, extent in zip(self.parts, self.shape, strict=True))


def make_view(
    emitter: Emitter, pointers: SSAValue, found: MemrefView, conditions: Sequence[SSAValue],
    positive: Sequence[Expression], element: str,
) -> View:  # fmt: skip
    """Write the view of an access; what has to hold for all of it makes its parts empty."""
    code, shape = emitter.code, shape_of(pointers.type)
    first = Evaluator(emitter).at(pointers, (Coord(),) * len(shape))
    offset = emitter.to_index(first)
    strides = [stride_text(emitter, dim.stride) if dim.size > 1 else "1" for dim in found.dims]
    holds = _all_hold(emitter, conditions, positive)
    parts: list[Part] = []
    for dim in found.dims:
        part = _part(emitter, dim.size, dim.lower, dim.upper)
        if holds is not None:
            size = part.size if isinstance(part.size, str) else code.index(part.size)
            none = code.index(0)
            part = Part(part.start, code.value(f"arith.select {holds}, {size}, {none} : index"))
            holds = None
        parts.append(part)
    sizes = ", ".join(map(str, shape))
    type_ = strided_text(shape, strides, element)
    base = emitter.base(found.base)
    name = code.value(
        f"memref.reinterpret_cast {base} to offset: [{offset}], sizes: [{sizes}], "
        f"strides: [{', '.join(strides)}] : memref<?x{element}> to {type_}"
    )
    return View(Tensor(name, type_), tuple(strides), tuple(parts), shape)


def strided_text(shape: Sequence[int | str], strides: Sequence[str], element: str) -> str:
    """The type of a view with an offset that is not known; sizes that are names neither."""
    dims = "".join(f"{'?' if isinstance(extent, str) else extent}x" for extent in shape)
    known = ", ".join("?" if stride.startswith("%") else stride for stride in strides)
    return f"memref<{dims}{element}, strided<[{known}], offset: ?>>"


def subview(emitter: Emitter, view: View, element: str) -> Tensor:
    """The part of a view that is accessed."""
    if view.is_whole():
        return view.memref
    sizes = [part.size for part in view.parts]
    type_ = strided_text(sizes, view.strides, element)
    name = emitter.code.value(
        f"memref.subview {view.memref.name}{part_text(view.parts)} : {view.memref.type} to {type_}"
    )
    return Tensor(name, type_)


def part_text(parts: Sequence[Part]) -> str:
    """Offsets, sizes and strides of a part, as `subview` and `extract_slice` take them."""
    starts = ", ".join(str(part.start) for part in parts)
    sizes = ", ".join(str(part.size) for part in parts)
    return f"[{starts}] [{sizes}] [{', '.join('1' for _ in parts)}]"


def has_names(emitter: Emitter, expressions: Sequence[Expression]) -> bool:
    """Whether every scalar of some expressions has a name here."""
    scalars = (factor for e in expressions for _, factors in e.terms for factor in factors)
    return all(emitter.find(scalar) is not None for scalar in scalars)


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
