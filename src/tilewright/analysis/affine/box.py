"""Whether an access is a box of a tensor, as a copy engine moves it, and what a launch must test.

The engine takes a tensor by its address, extents and strides, all of which the launch has to
know, and moves a box of it that starts at given indices. What lies outside of the tensor it reads
as 0 and does not write: that is what masks are for. *Source*: CUDA driver API 13.0,
`cuTensorMapEncodeTiled`; PTX ISA 8.8, 5.5, "Tensors".
"""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.access import AccessDim, Accesses, TileAccess
from tilewright.analysis.affine.choice import as_bounded
from tilewright.analysis.affine.demand import is_cut_off
from tilewright.analysis.affine.expression import (
    ONE,
    ZERO,
    Expression,
    Factors,
    Term,
    integer,
    symbol,
)
from tilewright.analysis.affine.guards import (
    Demand,
    Guard,
    divisor,
    is_bounded_at_launch,
    is_nonnegative,
    is_of_launch,
)
from tilewright.analysis.affine.tensor_box import BoxDim, TensorBox, Within
from tilewright.analysis.affine.text import name_of, text_of
from tilewright.analysis.facts import AxisFacts
from tilewright.analysis.launch_scalars import is_known_at_launch
from tilewright.ir.effects import global_access
from tilewright.machine.model import MachineModel
from tilewright.ops.creation.ir import ConstantOp, SplatOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, FpToFpOp
from tilewright.ops.function import is_argument
from tilewright.ops.shape.ir import BroadcastOp
from tilewright.runtime.tensor_descriptor import MAX_RANK
from tilewright.support.dataclass import replace

ALIGNMENT_BYTES = 16
"""Of the tensor's address, its strides but the last, the rows of a box and where a row starts."""
_MAX_OFFSET = (1 << 31) - 1
_CONVERSIONS = ("extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp")


def as_box(
    op: Operation, accesses: Accesses, facts: AxisFacts, machine: MachineModel
) -> TensorBox | str:
    """The box that a load or store accesses; why it accesses none where it does not."""
    if not machine.has_tma:
        return f"{machine.name} has no copy engine"
    access = accesses.of(op)
    return access if isinstance(access, str) else _Boxing(op, accesses, access, facts).box()


class _Refused(Exception):
    """Why an access is no box."""


class _Boxing:
    """Finds out about one access."""

    def __init__(
        self, op: Operation, accesses: Accesses, access: TileAccess, facts: AxisFacts
    ) -> None:
        self._op, self._accesses, self._facts = op, accesses, facts
        effect = global_access(op)
        self._is_store = effect is not None and effect.writes
        self._ended = {} if self._is_store else self._chosen_rows(access)
        dims = (self._ended.get(number, dim) for number, dim in enumerate(access.dims))
        self._access = replace(access, dims=tuple(dims))
        self._guards: list[Guard] = []
        self._within: list[Within] = []
        self._chosen: dict[Factors, Expression] = {}

    def box(self) -> TensorBox | str:
        try:
            return self._box()
        except _Refused as refused:
            return str(refused)

    def _box(self) -> TensorBox:
        access = self._access
        self._check_whole()
        order = self._order()
        offset = self._check_address()
        dims: list[BoxDim] = []
        for place, number in enumerate(order):
            outer = access.dims[order[place - 1]] if place else None
            dims.append(self._dim(number, outer))
        dims = [*self._chosen_dims(), *dims]
        if len(dims) > MAX_RANK:
            raise _Refused(f"{len(dims)} dimensions; the copy engine takes {MAX_RANK}")
        self._check_offsets(dims)
        guards, within = tuple(dict.fromkeys(self._guards)), tuple(self._within)
        size = access.element_bytes
        return TensorBox(access.base, size, offset, tuple(dims), tuple(order), guards, within)

    def _chosen_rows(self, access: TileAccess) -> dict[int, AccessDim]:
        """The dimensions whose rows are chosen up to a bound behind which nothing looks."""
        found: dict[int, AccessDim] = {}
        for number, dim in enumerate(access.dims):
            bounded = as_bounded(dim, self._accesses)
            if bounded is None:
                continue
            if is_cut_off(self._accesses, self._op.results[0], number, bounded.upper[-1]):
                found[number] = bounded
        return found

    def _check_whole(self) -> None:
        """What is asked of the access as a whole."""
        access, mask = self._access, self._access.mask
        if not access.dims:
            raise _Refused("it is one element")
        if not is_argument(access.base):
            raise _Refused(f"its pointer {name_of(access.base)} is no argument")
        if mask.opaque:
            raise _Refused("its mask is no bound along a dimension")
        if mask.conditions or mask.positive:
            raise _Refused("its mask has a condition of the whole tile")
        is_volatile = getattr(self._op, "is_volatile", None)
        if is_volatile is not None and is_volatile.value:
            raise _Refused("it is volatile")
        other = getattr(self._op, "other", None)
        if other is not None and not _is_zero(other):
            raise _Refused("what is masked out does not read as 0")
        for number, dim in enumerate(access.dims):
            if dim.indices is not None:
                looked_up = name_of(dim.indices)
                raise _Refused(f"dimension {number} is looked up in {looked_up}")
            if dim.extent == 1 and (dim.lower or dim.upper):
                raise _Refused(f"dimension {number} has one element and a mask")
            if dim.extent > 1 and dim.stride.is_zero():
                raise _Refused(f"it reads the same elements all along dimension {number}")

    def _order(self) -> list[int]:
        """The dimensions of more than one element, the contiguous one last."""
        dims = self._access.dims
        extended = [d for d, dim in enumerate(dims) if dim.extent > 1]
        inner = [d for d in extended if dims[d].stride.as_int() == 1]
        if len(inner) != 1:
            raise _Refused("no one dimension is contiguous")
        row_bytes = dims[inner[0]].extent * self._access.element_bytes
        if row_bytes % ALIGNMENT_BYTES:
            raise _Refused(f"rows of {row_bytes} bytes are no multiple of {ALIGNMENT_BYTES}")
        return [d for d in extended if d != inner[0]] + inner

    def _check_address(self) -> Expression:
        """The tensor starts at an aligned address that the launch knows: base and offset."""
        access = self._access
        offset, varying = _split(access.offset)
        self._choose(varying, ONE)
        if self._facts.of(access.base).divisor % ALIGNMENT_BYTES:
            guard = Guard(symbol(access.base), Demand.MULTIPLE, ALIGNMENT_BYTES, is_pointer=True)
            self._guards.append(guard)
        self._demand_multiple(offset, "where the tensor starts")
        return offset

    def _choose(self, number: Expression, stride: Expression) -> None:
        """Take a part of a start for indices of dimensions of their own.

        Of each term what the launch knows is the stride, and what the program knows the index.
        """
        for coefficient, factors in number.terms:
            known = tuple(factor for factor in factors if is_known_at_launch(factor))
            index = tuple(factor for factor in factors if factor not in known)
            part = Expression(((coefficient, known),), number.is_assumed).times(stride)
            self._chosen[index] = self._chosen.get(index, ZERO).plus(part)

    def _chosen_dims(self) -> list[BoxDim]:
        """The dimensions of one element."""
        dims: list[BoxDim] = []
        for index, stride in self._chosen.items():
            start = Expression(((1, index),))
            what = f"the step of {text_of(start)}"
            self._check_stride(what, stride)
            self._demand_nonnegative(start, text_of(start))
            dims.append(BoxDim(1, stride, start, ()))
        return dims

    def _dim(self, number: int, outer: AccessDim | None) -> BoxDim:
        """One dimension, with what has to hold along it; `outer` is the one around it."""
        dim = self._access.dims[number]
        dim = replace(dim, start=self._own_start(dim))
        if dim.stride.as_int() != 1:
            self._check_stride(f"the stride of dimension {number}", dim.stride)
        else:
            self._demand_multiple(dim.start, f"where dimension {number} starts")
        is_wrapped = dim.modulus is not None
        is_cut = number in self._ended or (is_wrapped and self._is_cut_off(number, dim))
        if dim.modulus is not None and not is_cut:
            self._check_wrap(number, dim, dim.modulus)
        self._check_lower(number, dim)
        sizes = self._sizes(number, dim)
        if not sizes and outer is not None:
            sizes = [self._row_length(number, dim, outer)]
        modulus = None if is_cut else dim.modulus
        return BoxDim(
            dim.extent, dim.stride, dim.start, tuple(sizes), modulus, is_cut, bool(dim.lower)
        )

    def _is_cut_off(self, number: int, dim: AccessDim) -> bool:
        """Whether nothing looks at the loaded elements that wrap, so that they may be 0."""
        if self._is_store or dim.modulus is None:
            return False
        length = dim.modulus.minus(dim.start)
        return is_cut_off(self._accesses, self._op.results[0], number, length)

    def _own_start(self, dim: AccessDim) -> Expression:
        """Where a dimension starts, without what has to be an index of a dimension of its own.

        That is what would have the tensor end elsewhere in each program (a batch, whose rows a
        mask counts from its first), or a row's first element not be aligned (a row by its number),
        or elements reach beyond the row that they would be counted in.
        """
        ends = [_split(dim.start.plus(upper))[1] for upper in dim.upper]
        scaled = self._scaled(dim)
        is_in_row = dim.upper or dim.stride.as_int() != 1
        whole = ZERO if is_in_row else scaled
        unaligned = [term for term in scaled.terms if not self._is_aligned(Expression((term,)))]
        rest = Expression(tuple(unaligned), dim.start.is_assumed)
        for taken in (whole, ZERO, *ends[:1], rest):
            start = dim.start.minus(taken)
            is_start = dim.modulus is None and self._fits(dim, start)
            if is_start and all(term in dim.start.terms for term in taken.terms):
                self._choose(taken, dim.stride)
                return start
        return dim.start

    def _fits(self, dim: AccessDim, start: Expression) -> bool:
        """Whether a dimension that starts there has an end that is known and aligned rows."""
        ends = all(is_of_launch(start.plus(upper)) for upper in dim.upper)
        is_inner = dim.stride.as_int() == 1
        return ends and (not is_inner or is_of_launch(start) or self._is_aligned(start))

    def _scaled(self, dim: AccessDim) -> Expression:
        """The terms of a start that are multiples of an argument and not the same everywhere."""
        found = ZERO
        for term in dim.start.terms:
            part = Expression((term,), dim.start.is_assumed)
            known = [factor for factor in part.symbols() if is_known_at_launch(factor)]
            if known and len(known) < len(part.symbols()):
                found = found.plus(part)
        return found

    def _sizes(self, number: int, dim: AccessDim) -> list[Expression]:
        """Where the tensor ends along a dimension: where each of its bounds is, or it wraps."""
        if dim.modulus is not None and (dim.upper or dim.lower):
            # A bound of what is wrapped is one of indices before they wrap.
            raise _Refused(f"dimension {number} wraps and has a mask")
        sizes = [dim.start.plus(upper) for upper in dim.upper]
        sizes = sizes if dim.modulus is None else [dim.modulus]
        for size in sizes:
            if not is_of_launch(size):
                raise _Refused(f"dimension {number} ends at {text_of(size)}, not known at a launch")
            self._demand_positive(size, f"the size of dimension {number}")
        return sizes

    def _check_stride(self, what: str, stride: Expression) -> None:
        if not is_of_launch(stride):
            raise _Refused(f"{what}, {text_of(stride)}, is not known at a launch")
        self._demand_multiple(stride, what)
        self._demand_positive(stride, what)

    def _demand_positive(self, number: Expression, what: str) -> None:
        """A number that a launch knows is more than 0, known or by a guard."""
        known = number.as_int()
        if known is not None and known < 1:
            raise _Refused(f"{what} is {known}")
        if known is not None:
            return
        if len(number.terms) == 1 and number.terms[0][0] > 0:
            number = Expression(((1, number.terms[0][1]),), number.is_assumed)
        self._guards.append(Guard(number, Demand.AT_LEAST, 1))

    def _check_wrap(self, number: int, dim: AccessDim, modulus: Expression) -> None:
        """No tile wraps in its middle where it starts at, and the modulus is, a multiple of it."""
        if not is_of_launch(modulus):
            raise _Refused(f"dimension {number} wraps at {text_of(modulus)}, not known at a launch")
        if not all(self._divides(dim.extent, term) for term in dim.start.terms):
            raise _Refused(f"dimension {number} may wrap inside of a tile")
        if not all(self._divides(dim.extent, term) for term in modulus.terms):
            self._guards.append(Guard(modulus, Demand.MULTIPLE, dim.extent))

    def _divides(self, extent: int, term: tuple[int, tuple[SSAValue, ...]]) -> bool:
        known = divisor(Expression((term,)), self._facts)
        return term[0] % extent == 0 or known % extent == 0

    def _check_lower(self, number: int, dim: AccessDim) -> None:
        """No element lies before the tensor, or those that do are masked out."""
        limits = [dim.start.plus(lower) for lower in dim.lower]
        others = [limit for limit in limits if limit.as_int() != 0]
        if others:
            raise _Refused(f"dimension {number} begins at {text_of(others[0])}, not at 0")
        # The engine reads 0 before the tensor, and does not write there but fault.
        if self._is_store or not limits:
            self._demand_nonnegative(dim.start, f"where dimension {number} starts")

    def _demand_nonnegative(self, number: Expression, what: str) -> None:
        """A number is not negative, known or by guards of its arguments."""
        if is_nonnegative(number, self._facts):
            return
        if is_of_launch(number):
            self._guards.append(Guard(number, Demand.AT_LEAST, 0))
            return
        for coefficient, factors in number.terms:
            unknown = [f for f in factors if not self._facts.of(f).is_nonnegative]
            if coefficient < 0:
                raise _Refused(f"{what} may be negative")
            for factor in map(symbol, unknown):
                if not is_bounded_at_launch(factor):
                    raise _Refused(f"{what} may be negative")
                self._guards.append(Guard(factor, Demand.AT_LEAST, 0))

    def _row_length(self, number: int, dim: AccessDim, outer: AccessDim) -> Expression:
        """Where rows end that no mask ends: a tile must not reach into the next one."""
        length = outer.stride.divided_by(dim.stride)
        if length is None:
            raise _Refused(f"dimension {number} has no mask, and no row that it ends with")
        end = dim.start.plus(integer(dim.extent))
        if end.as_int() is None or length.as_int() is None:
            self._within.append(Within(dim.start, dim.extent, length))
        elif (end.as_int() or 0) > (length.as_int() or 0):
            raise _Refused(f"dimension {number} reaches into the next row")
        return length

    def _is_aligned(self, number: Expression) -> bool:
        """Whether so many elements are known to be a multiple of 16 bytes."""
        size = self._access.element_bytes
        return divisor(number, self._facts) * size % ALIGNMENT_BYTES == 0

    def _demand_multiple(self, number: Expression, what: str) -> None:
        """A number of elements is a multiple of 16 bytes, known or by a guard."""
        if self._is_aligned(number):
            return
        if number.as_int() is not None or not is_of_launch(number):
            raise _Refused(f"{what} is not known to be a multiple of {ALIGNMENT_BYTES} bytes")
        elements = ALIGNMENT_BYTES // self._access.element_bytes
        self._guards.append(Guard(number, Demand.MULTIPLE, elements))

    def _check_offsets(self, dims: list[BoxDim]) -> None:
        """Indices of 32 bits do not overflow where the whole tensor has fewer elements."""
        if not self._access.is_assumed or not all(dim.sizes for dim in dims):
            return
        total = ZERO
        for dim in dims:
            total = total.plus(dim.sizes[0].times(dim.stride))
        if total.as_int() is None:
            self._guards.append(Guard(total, Demand.AT_MOST, _MAX_OFFSET))


def _split(number: Expression) -> tuple[Expression, Expression]:
    """What of a sum the launch knows, and what only the program does."""
    parts: dict[bool, list[Term]] = {True: [], False: []}
    for term in number.terms:
        parts[all(map(is_known_at_launch, term[1]))].append(term)
    known, varying = (Expression(tuple(parts[key]), number.is_assumed) for key in (True, False))
    return known, varying


def _is_zero(value: SSAValue) -> bool:
    """Whether a tile or scalar is the constant 0, converted or not."""
    while isinstance(value, OpResult) and type(value.op) in _KEEP_ZERO:
        value = value.op.operands[0]
    if not isinstance(value, OpResult) or type(value.op) is not ConstantOp:
        return False
    # Not -0.0, which compares equal but is another number.
    return str(value.op.splat_value()) in ("0", "0.0", "False")


_KEEP_ZERO = frozenset(
    (FpToFpOp, SplatOp, BroadcastOp, *(ELEMENTWISE[f"arith.{n}"] for n in _CONVERSIONS))
)
