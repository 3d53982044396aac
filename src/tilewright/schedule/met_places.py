"""Elements that a kernel reads through one argument and writes through another at the same places.

    x = load a + i;  store b + i, f(x)        updates an array in place where a and b are one

Arguments are taken not to overlap but there: element e of both tiles is one element of memory.
The thread that stores it has loaded it before, if the tiles have one layout in which each element
is in one thread. In any other layout another thread loads it as well, which has to be first, too.
Of the threads that hold copies of an element one stores it, the same for tiles of one layout.

A tile that moves along a loop, as by `k * 16`, comes by places that the text does not tell: it may
meet every tile of its form, in one of the iterations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.access import AccessDim, Accesses
from tilewright.analysis.affine.expression import Expression
from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ir.regions import ControlFlowOp, loops_around
from tilewright.ir.types import PointerType, element_of, shape_of, storage_bytes
from tilewright.layout.linear import LinearLayout
from tilewright.support.dataclass import dataclass

_Kind = tuple[tuple[int, ...], int]


@dataclass(frozen=True)
class Place:
    """Which elements of its argument a tile of pointers leads to, comparable between arguments.

    `form` is what a tile keeps wherever it lies: the bytes of an element, extents and strides.
    `start` is its first element; None of a tile that moves along a loop.
    """

    form: tuple[object, ...]
    start: object | None

    def meets(self, other: Place) -> bool:
        """Whether element e of both may be one element of memory."""
        if self.form != other.form:
            return False
        return self.start is None or other.start is None or self.start == other.start


@dataclass(frozen=True)
class Touch:
    """A plain access: its pointers, and the argument that they come from."""

    pointers: SSAValue
    base: SSAValue
    is_write: bool


def met_places(touches: Sequence[Touch]) -> Mapping[SSAValue, Place]:
    """The places of the pointers whose elements others may touch by other threads.

    *Constraints*: the program does not change meanwhile.
    """
    kinds: dict[object, list[Touch]] = defaultdict(list)
    for touch in touches:
        kinds[_kind_of(touch.pointers)].append(touch)
    accesses, forms = Accesses(), dict[object, list[tuple[Touch, Place]]]()
    for some in kinds.values():
        if not _may_meet(some):
            continue
        for touch in some:
            place = _place_of(touch.pointers, accesses)
            if place is not None:
                forms.setdefault(place.form, []).append((touch, place))
    found: dict[SSAValue, Place] = {}
    for pairs in forms.values():
        for start in dict.fromkeys(place.start for _, place in pairs):
            met = [pair for pair in pairs if pair[1].start in (start, None)]
            if _may_meet([touch for touch, _ in met]):
                found |= {touch.pointers: place for touch, place in met}
    return found


def threads_of(pointers: SSAValue) -> LinearLayout | None:
    """The layout of a tile of pointers, or None of a scalar, which is in every thread."""
    return layout_of(pointers.type) if has_layout(pointers.type) else None


def by_one_thread(one: LinearLayout | None, other: LinearLayout | None) -> bool:
    """Whether two tiles have one layout, with each element in one thread alone."""
    if one is None or one.free_bits("lane") or one.free_bits("warp"):
        return False
    return one == other


def _may_meet(touches: Sequence[Touch]) -> bool:
    """Whether some write through one argument what is touched through another by other threads."""
    if not any(touch.is_write for touch in touches) or len({t.base for t in touches}) < 2:
        return False
    first = threads_of(touches[0].pointers)
    return not all(by_one_thread(first, threads_of(touch.pointers)) for touch in touches)


def _kind_of(pointers: SSAValue) -> _Kind:
    """What tiles at the same places have in common at least: the shape, and the elements' bytes."""
    type_ = element_of(pointers.type)
    assert isinstance(type_, PointerType)
    return shape_of(pointers.type), storage_bytes(type_.pointee)


def _place_of(pointers: SSAValue, accesses: Accesses) -> Place | None:
    """The place of a tile of pointers, or None where it is not known."""
    found = accesses.at(pointers)
    if isinstance(found, str):
        return None
    start, wrapped = found.offset, list[Expression]()
    for dim in found.dims:
        if dim.modulus is None:  # which of the dimensions a start belongs to changes no address
            start = start.plus(dim.stride.times(dim.start))
        else:
            wrapped.append(dim.start)
    starts = (start, *wrapped)
    is_moving = any(map(_moves, starts))
    form = (found.element_bytes, *map(_dimension, found.dims))
    return Place(form, None if is_moving else tuple(map(_number, starts)))


def _moves(expression: Expression) -> bool:
    """Whether a number may be another one in each iteration of a loop."""
    return any(_is_in_loop(symbol) for symbol in expression.symbols())


def _is_in_loop(value: SSAValue) -> bool:
    """Whether a value is computed or carried by a loop."""
    op = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    if op is None:
        return False
    is_loop = isinstance(op, ControlFlowOp) and op.is_loop()
    is_carried = is_loop and not isinstance(value.owner, Operation)
    return is_carried or next(loops_around(op), None) is not None


def _dimension(dim: AccessDim) -> object:
    if dim.modulus is None:
        return dim.extent, _number(dim.stride), dim.indices
    return dim.extent, _number(dim.stride), _number(dim.modulus)


def _number(expression: Expression) -> object:
    """A number, alike in whichever order its terms and factors were met."""
    return frozenset((c, _product(factors)) for c, factors in expression.terms)


def _product(factors: Sequence[SSAValue]) -> object:
    return frozenset((factor, factors.count(factor)) for factor in factors)
