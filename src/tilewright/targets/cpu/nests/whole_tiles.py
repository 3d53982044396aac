"""Whether a load finds its whole tile in memory in one regular piece, asked at run time.

It does where its mask holds everywhere and no index jumps (`% M` wraps) inside the tile. Both
are questions about a few elements, because masks and addresses are affine.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import i1, shape_of, width_bits
from tilewright.ops.elementwise.ir import CmpIOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.targets.cpu.nests import access, masks
from tilewright.targets.cpu.nests.coordinates import Coords, constant_coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.schedule.inline import owner

_SAME_MASK = ("tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tw.hint")
# Comparisons of unsigned numbers hold around a gap where their sides wrap: `i - 4 < n`.
_LESS = frozenset(("slt", "sle"))
_MORE = frozenset(("sgt", "sge"))
# By definition: narrower integers wrap within the extents of tensors.
_INDEX_BITS = 32


def whole_tile(ev: Evaluator, op: LoadOp) -> SSAValue | bool | None:
    """Whether every element is loaded and no index jumps: True, an i1, or None for no way."""
    conditions: list[SSAValue] = []
    if op.mask is not None and not masks.is_all_true(op.mask):
        held = all_true(ev, op.mask)
        if held is None:
            return None
        conditions += held
    strides = ev.lowering.bufferization.structure.strides(op.operands[0])
    jumping = [dim for dim, stride in enumerate(strides) if stride is not None and stride.jumps]
    for dim in jumping:
        others = [other for other in jumping if other != dim]
        conditions += [_is_straight(ev, op.operands[0], dim, at) for at in _edges(op, others)]
    if not conditions:
        return True
    total = conditions[0]
    for condition in conditions[1:]:
        total = ev.emit.integer("andi", total, condition)
    return total


def _edges(op: LoadOp, dims: list[int]) -> list[dict[int, int]]:
    """Both ends of every dimension of `dims`: an index that jumps may do so in some rows only.

    What bounds a jump is affine: where it is not crossed at any corner, it is not crossed inside.
    """
    shape = shape_of(op.operands[0].type)
    edges: list[dict[int, int]] = [{}]
    for dim in dims:
        edges = [{**edge, dim: index} for edge in edges for index in (0, shape[dim] - 1)]
    return edges


def _is_straight(ev: Evaluator, ptr: SSAValue, dim: int, edge: dict[int, int]) -> SSAValue:
    """Whether the addresses along one dimension lie one stride apart, on one edge of the tile."""
    emit = ev.emit
    shape = shape_of(ptr.type)
    stride = ev.lowering.bufferization.structure.strides(ptr)[dim]
    assert stride is not None
    size = access.pointee_bytes(ptr)

    def at(index: int) -> SSAValue:
        here = {**edge, dim: index}
        coords = constant_coords(tuple(here.get(d, 0) for d in range(len(shape))))
        return access.address(ev, ev.element(ptr, coords, False))

    straight: SSAValue | None = None
    for index in access.ends(shape[dim])[1:]:
        expected = emit.integer("addi", at(0), polynomial(ev, stride, index * size))
        equal = emit.compare("eq", at(index), expected)
        straight = equal if straight is None else emit.integer("andi", straight, equal)
    return emit.constant(i1, 1) if straight is None else straight


def all_true(ev: Evaluator, mask: SSAValue) -> list[SSAValue] | None:
    """Scalar conditions that together say that a mask holds everywhere; None if unknown.

    An affine comparison holds everywhere when it holds at the corner where it is hardest.
    """
    conditions: list[SSAValue] = []
    pending = [mask]
    while pending:
        part = pending.pop()
        op = owner(part)
        if op is not None and op.name in _SAME_MASK:
            pending.append(op.operands[0])
        elif op is not None and op.name == "arith.andi":
            pending += reversed(op.operands)
        elif op is not None and op.name == "tt.splat":
            conditions.append(ev.lowering.scalar(op.operands[0]))
        elif not masks.is_all_true(part):
            held = _held_comparison(ev, op)
            if held is None:
                return None
            conditions.append(held)
    return conditions


def _held_comparison(ev: Evaluator, op: Operation | None) -> SSAValue | None:
    """Whether an affine comparison holds everywhere; None for anything else."""
    if not isinstance(op, CmpIOp) or op.predicate_name() not in _LESS | _MORE:
        return None
    if width_bits(op.operands[0].type) < _INDEX_BITS:
        return None
    want_low = op.predicate_name() in _MORE
    corners = [_corner(ev, op.operands[0], want_low), _corner(ev, op.operands[1], not want_low)]
    if corners[0] is None or corners[1] is None:
        return None
    sides = [
        ev.element(v, c, False) for v, c in zip(op.operands, corners, strict=True) if c is not None
    ]
    return ev.emit.compare(op.predicate_name(), sides[0], sides[1])


def _corner(ev: Evaluator, value: SSAValue, want_low: bool) -> Coords | None:
    """The element of an affine tile with the least or the greatest value."""
    indices = []
    strides = ev.lowering.bufferization.structure.strides(value)
    for stride, extent in zip(strides, shape_of(value.type), strict=True):
        step = None if stride is None or stride.jumps else stride.as_int()
        if step is None:
            return None
        indices.append(0 if (step >= 0) == want_low else extent - 1)
    return constant_coords(tuple(indices))
