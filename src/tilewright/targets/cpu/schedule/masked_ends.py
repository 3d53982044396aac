"""Whether the masks of a k loop's operands end where its last step ends.

    for k in 0..K step B { a = load(…, mask=s < K - k, other=0); b = …; acc = dot(a, b, acc) }
    for i in 0..(K + B - 1) / B { … mask=s < K - i·B … }                    s = 0, 1, … B - 1

A step may then be as long as one likes: what a longer last step takes beyond the loop's end is
masked, reads nothing and adds zeros. So the deep loop of `widen_k_loops.py` needs no loop behind
it for the rest. Only masks are taken whose growing side is `s` itself: `k + s < K` could wrap in
a longer step where it does not in a short one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.affine.expression import Expression, symbol
from tilewright.analysis.affine.scalars import Scalars
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.effects import is_free, is_plain_read
from tilewright.ir.op import ViewOp
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.matmul.ir import ProductOp
from tilewright.support.worklist import once
from tilewright.targets.cpu.nests.prefixes import prefix_of
from tilewright.targets.cpu.schedule.bufferization import fills_zeros
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.shifts import source_dim

_QUOTIENT, _AND = ELEMENTWISE["arith.divsi"], ELEMENTWISE["arith.andi"]


def end_in_masks(loop: ForOp, product: ProductOp, depth: int) -> bool:
    """Whether a last step may be longer than `depth`: both operands are zero from the end on."""
    low = constant_of(loop.lb)
    if low is None or low < 0:
        return False
    masks = _Masks(loop, depth)
    return all(masks.end(*operand) for operand in operands_of(product))


def operands_of(product: ProductOp) -> Sequence[tuple[Operation | None, int]]:
    """What makes each operand of a product, but for a transposition, and its dimension along k."""
    return _source(product.a, 1), _source(product.b, 0)


def _source(value: SSAValue, dim: int) -> tuple[Operation | None, int]:
    op = owner(value)
    if isinstance(op, ViewOp) and op.source_dims() == (1, 0):
        return owner(op.operands[0]), 1 - dim
    return op, dim


def adds_up_alone(loop: ForOp, product: ProductOp, may_be_turned: bool) -> bool:
    """Whether a loop reads its product's operands and nothing else, and only its sum is used after.

    Both are rows in memory, of which a long step reads no more than there is; or columns, where
    they `may_be_turned`.
    """
    body = loop.body.block
    sum_ = loop.results[body.args.index(product.c) - 1]
    if any(result.uses for result in loop.results if result is not sum_):
        return False
    loads = [load for load, _ in operands_of(product)]
    if any(not is_free(op) and op not in loads and op is not product for op in body.ops):
        return False
    if not may_be_turned and loads != [owner(product.a), owner(product.b)]:
        return False
    tiles = AffineTiles()
    return all(_is_matrix(load, body, tiles, may_be_turned) for load in loads)


def _is_matrix(
    load: Operation | None, body: Block, tiles: AffineTiles, may_be_turned: bool
) -> bool:
    """Whether a load of a loop reads rows, or columns, and zeros where its mask hides them."""
    if load is None or load.parent is not body or not is_plain_read(load):
        return False
    strides = tiles.strides(load.operands[0])
    near = strides if may_be_turned else strides[1:]
    return fills_zeros(load) and any(s is not None and s.as_int() == 1 for s in near)


class _Masks:
    """What the masks inside of one loop say."""

    def __init__(self, loop: ForOp, depth: int) -> None:
        self._loop, self._depth = loop, depth
        self._tiles, self._scalars = AffineTiles(), Scalars()

    def end(self, load: Operation | None, dim: int) -> bool:
        """Whether a load reads zeros from the loop's end on along a dimension."""
        mask: object = getattr(load, "mask", None)
        if not isinstance(mask, SSAValue):
            return False
        pending: list[tuple[SSAValue, int]] = [(mask, dim)]
        for part, along in once(pending):
            op = owner(part)
            if op is None:
                continue
            if type(op) is _AND:
                pending += [(operand, along) for operand in op.operands]
            elif prefix_of(op) is not None:
                if self._is_end(op, along):
                    return True
            elif len(op.operands) == 1 and is_free(op):
                inner = source_dim(op, along)
                pending += [] if inner is None else [(op.operands[0], inner)]
        return False

    def _is_end(self, comparison: Operation, dim: int) -> bool:
        """Whether a comparison of the index along a dimension fails from the loop's end on."""
        prefix = prefix_of(comparison)
        assert prefix is not None
        left_grows, more = prefix
        growing, fixed = comparison.operands if left_grows else reversed(comparison.operands)
        index, bound = self._tiles.of(growing), self._tiles.of(fixed).uniform()
        if bound is None or any(not a.is_still() for d, a in enumerate(index.dims) if d != dim):
            return False
        stride, start = index.dims[dim].stride, index.start()
        first = None if start is None else start.as_int()
        if stride is None or stride.jumps or stride.as_int() != 1 or first is None or first < 0:
            return False
        return self._is_covered(self._scalars.resolve(bound), more - first)

    def _is_covered(self, bound: Expression, more: int) -> bool:
        """Whether `bound + more` is no more than what is left of the loop, in elements of k."""
        loop = self._loop
        counter, end, quotient = symbol(loop.body.block.args[0]), loop.ub, owner(loop.ub)
        if constant_of(loop.step) == self._depth:
            over = bound.minus(self._scalars.of(end)).plus(counter).as_int()
            return over is not None and over + more <= 0
        if constant_of(loop.step) != 1 or quotient is None or type(quotient) is not _QUOTIENT:
            return False
        dividend, divisor = quotient.operands
        if constant_of(divisor) != self._depth:
            return False
        # Truncated towards zero, depth · (x / depth) is at least x - (depth - 1).
        left = self._scalars.of(dividend).minus(counter.scaled(self._depth))
        over = bound.minus(left).as_int()
        return over is not None and over + more + self._depth - 1 <= 0
