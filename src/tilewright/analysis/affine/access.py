"""Which elements of which tensor a load or store accesses.

    element [i₀, i₁, …] is base[offset + Σ_d stride_d · (start_d + i_d)], counted in elements

The start is split by dimension: `start_d` is a number of rows, columns, … What the program adds
to the pointers as a whole, such as the step of a loop, belongs to the dimension whose stride
divides it, of several to the one with the largest stride; what no stride divides stays in `offset`.
An attribution changes no address, only what `start_d` is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.along import Along, Lookup, Wrap
from tilewright.analysis.affine.expression import ZERO, Expression
from tilewright.analysis.affine.mask import Bound, MaskForm, mask_form
from tilewright.analysis.affine.scalars import Scalars
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.types import PointerType, element_of, shape_of, storage_bytes
from tilewright.ops.elementwise.ir import BitcastOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class AccessDim:
    """One dimension of an access.

    Index i of `extent` is element `start + i` of the tensor's dimension; where there is a
    `modulus`, element (start + i) mod modulus; where there are `indices`, element
    start + indices[i]. Only i with `lower` <= i < `upper`, for each of these, are accessed.
    """

    extent: int
    stride: Expression
    start: Expression = ZERO
    modulus: Expression | None = None
    indices: SSAValue | None = None
    lower: tuple[Expression, ...] = ()
    upper: tuple[Expression, ...] = ()

    def is_plain(self) -> bool:
        """Whether consecutive indices are consecutive elements of the dimension."""
        return self.modulus is None and self.indices is None


@dataclass(frozen=True)
class TileAccess:
    """What one load or store accesses; see the module.

    `base` is a scalar pointer to elements of `element_bytes`, an argument where the program does
    not choose between several. `mask` holds the parts of the mask that bound no dimension.
    """

    base: SSAValue
    element_bytes: int
    offset: Expression
    dims: tuple[AccessDim, ...]
    mask: MaskForm

    @property
    def is_assumed(self) -> bool:
        """Whether this holds only unless index arithmetic of the program overflows."""
        return any(expression.is_assumed for expression in self.expressions())

    def expressions(self) -> Iterator[Expression]:
        """Every number in this."""
        yield self.offset
        yield from self.mask.positive
        for dim in self.dims:
            yield from (dim.stride, dim.start, *dim.lower, *dim.upper)
            if dim.modulus is not None:
                yield dim.modulus


class Accesses:
    """The accesses of a program.

    *Constraints*: the program does not change while it is asked.
    """

    def __init__(self) -> None:
        self.tiles = AffineTiles()
        self.scalars = Scalars()

    def of(self, op: Operation) -> TileAccess | str:
        """What a load or store accesses; why that is not known where it is not.

        *Constraints*: the first operand is a pointer or a tile of pointers, and a `mask` an
        operand.
        """
        pointers = op.operands[0]
        found = self.at(pointers)
        if isinstance(found, str):
            return found
        mask = mask_form(self.tiles, self.scalars, getattr(op, "mask", None))
        bounded = tuple(_bounded(dim, number, mask.bounds) for number, dim in enumerate(found.dims))
        return replace(found, dims=bounded, mask=mask)

    def at(self, pointers: SSAValue) -> TileAccess | str:
        """What an access through all pointers of a tile touches; why that is not known."""
        shape, tile = shape_of(pointers.type), self.tiles.of(pointers)
        if tile.base is None:
            return "its pointers are not one pointer plus offsets"
        base, rest = self._root(tile.base)
        dims: list[AccessDim] = []
        for number, (along, extent) in enumerate(zip(tile.dims, shape, strict=True)):
            found = self._dim(along, extent)
            if found is None:
                return f"its pointers are not affine along dimension {number}"
            dim, left = found
            dims.append(dim)
            rest = rest.plus(left)
        if tile.rest is None:
            return "where its pointers start is not known"
        offset = _attribute(dims, rest.plus(self.scalars.resolve(tile.rest)))
        return TileAccess(base, _element_bytes(pointers), offset, tuple(dims), MaskForm())

    def _root(self, pointer: SSAValue) -> tuple[SSAValue, Expression]:
        """The pointer that a scalar pointer is computed from, and the elements between them."""
        offset = ZERO
        while isinstance(pointer, OpResult):
            source = pointer.op.operands[0] if pointer.op.operands else pointer
            if type(pointer.op) is AddPtrOp:
                offset = offset.plus(self.scalars.of(pointer.op.operands[1]))
            elif type(pointer.op) is not BitcastOp or not _are_alike(source, pointer):
                break
            pointer = source
        return pointer, offset

    def _dim(self, along: Along, extent: int) -> tuple[AccessDim, Expression] | None:
        """A dimension, and what it adds to the start that is no number of its elements."""
        start = None if along.start is None else self.scalars.resolve(along.start)
        if start is None:
            return None
        if isinstance(along.form, Wrap):
            found = self._wrapped(along.form, extent)
            return None if found is None else (found, start)
        if isinstance(along.form, Lookup):
            scale = self.scalars.resolve(along.form.scale)
            return _split(AccessDim(extent, scale, indices=along.form.indices), start)
        if not along.is_linear() or along.stride is None:
            return None
        return _split(AccessDim(extent, self.scalars.resolve(along.stride.value)), start)

    def _wrapped(self, wrap: Wrap, extent: int) -> AccessDim | None:
        """scale · ((start + step · i) mod modulus), counted in steps."""
        parts = (wrap.step, wrap.start, wrap.modulus, wrap.scale)
        step, start, modulus, scale = map(self.scalars.resolve, parts)
        first, period = start.divided_by(step), modulus.divided_by(step)
        if first is None or period is None or (step.as_int() or 0) <= 0:
            return None
        return AccessDim(extent, scale.times(step), first, period)


def _split(dim: AccessDim, start: Expression) -> tuple[AccessDim, Expression]:
    """A dimension that starts at as many of its strides as a start holds, and what is left."""
    whole, left = _multiples(start, dim.stride)
    return replace(dim, start=dim.start.plus(whole)), left


def _multiples(start: Expression, stride: Expression) -> tuple[Expression, Expression]:
    """How often a stride is in the terms that it divides, and the sum of the others."""
    whole, left = Expression((), start.is_assumed), Expression((), start.is_assumed)
    for term in start.terms:
        part = Expression((term,), start.is_assumed)
        count = None if stride.is_zero() else part.divided_by(stride)
        if count is None:
            left = left.plus(part)
        else:
            whole = whole.plus(count)
    return whole, left


def _attribute(dims: list[AccessDim], rest: Expression) -> Expression:
    """Give every part of a start to the dimension with the largest stride that divides it."""
    for number in sorted(range(len(dims)), key=lambda d: _size(dims[d].stride), reverse=True):
        if dims[number].modulus is None:
            dims[number], rest = _split(dims[number], rest)
    return rest


def _size(stride: Expression) -> tuple[int, int]:
    """An order of strides: products of more scalars first, then by their coefficient."""
    return max(((len(factors), abs(c)) for c, factors in stride.terms), default=(0, 0))


def _bounded(dim: AccessDim, number: int, bounds: Sequence[Bound]) -> AccessDim:
    own = [bound for bound in bounds if bound.dim == number]
    if not own:
        return dim
    lower = tuple(bound.limit for bound in own if not bound.is_upper)
    upper = tuple(bound.limit for bound in own if bound.is_upper)
    return replace(dim, lower=lower, upper=upper)


def _element_bytes(pointer: SSAValue) -> int:
    type_ = element_of(pointer.type)
    assert isinstance(type_, PointerType)
    return storage_bytes(type_.pointee)


def _are_alike(left: SSAValue, right: SSAValue) -> bool:
    """Whether two scalar pointers count elements of one size."""
    types = [element_of(value.type) for value in (left, right)]
    sizes = [storage_bytes(t.pointee) for t in types if isinstance(t, PointerType)]
    return len(sizes) == 2 and sizes[0] == sizes[1]
