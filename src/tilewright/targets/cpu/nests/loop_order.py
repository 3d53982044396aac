"""Chooses the dimension along which a nest's vectors lie, and how many lanes they have.

The lane dimension is the one along which most accesses are contiguous. A vector is a chunk of
up to four native vectors for light bodies and two for heavy ones (measured: 64 lanes of f32 on
AVX-512 for copies and sums, 32 for exp-heavy bodies; wider chunks spill). With 16 registers it is
two, of heavy bodies too: constants are read again for each vector, and lines fetched ahead of it
(measured on a Zen 3: exp-heavy bodies take 4 to 17 % less time than with one).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import integer
from tilewright.analysis.affine.stride import Stride
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.effects import is_plain_read
from tilewright.ir.types import is_pointer, shape_of, width_bits
from tilewright.ops.reduction.ir import CombineOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.estimate import num_instructions
from tilewright.targets.cpu.nests.coordinates import (
    Coords,
    folded_coords,
    loop_coord,
    normalized,
    source_coords,
)
from tilewright.targets.cpu.nests.pieces import pieces_along
from tilewright.targets.cpu.schedule.bufferization import Bufferization
from tilewright.targets.cpu.schedule.inline import is_tile, num_folded, own_cost, owner, reads
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import SCALAR_KINDS, Root, RootKind
from tilewright.targets.cpu.schedule.storage import row_major

# From so many streams or ops on a vector is two native ones, not four. Chosen, not measured: four
# vectors of six streams are 24 registers, and an op holds its operands. Any width is right.
_HEAVY_STREAMS = 6
_HEAVY_OPS = 60
_LIGHT_STREAMS, _LIGHT_COST = 2, 4
"""A fold of so little waits for the sums that it adds to: with 16 registers it has four of them.

Measured on Zen 3, 2026-11-29, times with four and two, rows of 128, 250, 1000, 1024 and 4096 f32:
sums 0.87, 0.88, 0.81, 0.87, 0.90, of squares 0.87, 0.88, 0.87, 0.85, 0.84, of products 0.85, 0.87,
0.81, 0.82, 0.91, variances 0.84, 0.89, 0.74, 0.74, 0.73; extremes 0.97 to 1.05."""
# Chosen, not measured: rows that are shorter have a chunk or two either way.
_LATENT_VECTORS = 16

SIGNED_DIVISIONS = ("arith.divsi", "arith.remsi")


Place = tuple[SSAValue, Coords]
"""A tile and the index of the element that is asked for."""


@dataclass(frozen=True)
class MemoryAccess:
    """A place where a nest touches memory: a load, a store (`op`) or a buffer (None)."""

    value: SSAValue
    coords: Coords
    op: Operation | None
    is_store: bool = False


@dataclass(frozen=True)
class NestBody:
    """What evaluating a nest's roots touches and costs, before any code exists.

    `cost`: vector instructions for each vector of elements, addresses not counted. `quotients`: the
    results of signed divisions.
    """

    accesses: tuple[MemoryAccess, ...]
    widest_bits: int
    is_heavy: bool
    num_ops: int
    cost: int
    quotients: tuple[Place, ...] = ()


def survey(bufferization: Bufferization, roots: Sequence[Root], fresh: set[SSAValue]) -> NestBody:
    """Walk the expressions of a nest once."""
    accesses: dict[MemoryAccess, None] = {}
    quotients: list[Place] = []
    seen: set[Place] = set()
    pending: list[Place] = []
    widest, heavy, count, cost = 8, False, 0, 0
    for root in roots:
        start = tuple(loop_coord(dim) for dim in range(len(root.space)))
        pending.extend((value, start) for value in root.values if is_tile(value))
        widest = max([widest, *(width_bits(v.type) for v in root.values if not is_pointer(v.type))])
        if root.kind in (RootKind.STORE, RootKind.UPDATE):
            accesses[MemoryAccess(root.values[0], normalized(start, root.space), root.op, True)] = (
                None
            )
        if root.kind in (RootKind.MATERIALIZE, RootKind.COPY) and root.strides is None:
            accesses[MemoryAccess(root.values[0], normalized(start, root.space), None, True)] = None
    while pending:
        value, coords = pending.pop()
        coords = normalized(coords, shape_of(value.type))
        if (value, coords) in seen:
            continue
        seen.add((value, coords))
        op = owner(value)
        if not bufferization.costs.is_symbolic(value) and not is_pointer(value.type):
            widest = max(widest, width_bits(value.type))
        if value not in fresh and bufferization.is_stored(value):
            accesses[MemoryAccess(value, coords, None)] = None
            continue
        assert op is not None and isinstance(value, OpResult)
        if is_plain_read(op):
            accesses[MemoryAccess(op.operands[0], coords, op)] = None
        if op.name in SIGNED_DIVISIONS:
            quotients.append((value, coords))
        count += 1
        heavy = heavy or own_cost(op) >= 10
        cost += 0 if bufferization.costs.is_symbolic(value) else num_instructions(op)
        source = source_coords(op, coords, value.index)
        places = [coords if source is None else source]
        if num_folded(op) > 1:
            places = folded_coords(op, coords)
        for operand, _ in reads(op) or ():
            if is_tile(operand):
                pending.extend((operand, place) for place in places)
    return NestBody(tuple(accesses), widest, heavy, count, cost, tuple(quotients))


def stride_along(structure: AffineTiles, access: MemoryAccess, loop: int) -> Stride | None:
    """How an access's address moves with one loop variable; None when that is general."""
    total: Stride | None = Stride()
    strides = structure.strides(access.value)
    for stride, coord in zip(strides, access.coords, strict=True):
        scale = dict(coord.terms).get(loop, 0)
        if scale == 0:
            continue
        if stride is None or total is None:
            return None
        total = total.plus(stride.times(integer(scale)))
    return total


def _score(lowering: Lowering, access: MemoryAccess, dim: int) -> float:
    if access.op is None:
        shape = shape_of(access.value.type)
        is_turned = lowering.bufferization.key(access.value) in lowering.bufferization.turned
        strides = row_major(shape[::-1])[::-1] if is_turned else row_major(shape)
        pairs = zip(access.coords, strides, strict=True)
        step = sum(dict(coord.terms).get(dim, 0) * stride for coord, stride in pairs)
        return {0: 1.0, 1: 2.0}.get(step, -2.0)
    stride = stride_along(lowering.bufferization.structure, access, dim)
    step = None if stride is None else stride.as_int()
    if step == 1 and stride is not None:
        return (4.0 if access.is_store else 3.0) - (0.5 if stride.jumps else 0.0)
    if step == 0 and not access.is_store:
        return 2.0
    pieces = pieces_along(lowering.bufferization, access.value, access.coords, dim)
    if pieces is not None and pieces.step == 1:
        return 3.5 if access.is_store else 2.5
    if pieces is not None and pieces.step == 0 and not access.is_store:
        return 1.5
    penalty = -4.0 if step is None or access.is_store else -3.0
    return penalty if lowering.machine.has_gather else 4 * penalty


def choose_lane_dim(lowering: Lowering, roots: Sequence[Root], body: NestBody) -> int | None:
    """The dimension along which vectors lie; None for scalar loops."""
    space, axis = roots[0].space, roots[0].axis
    if roots[0].kind in SCALAR_KINDS or not all(can_vectorize(root) for root in roots):
        return None
    best: tuple[float, int] | None = None
    folds = [root.axis for root in roots if root.axis is not None]
    for dim, size in enumerate(space):
        if size == 1 or (roots[0].kind is RootKind.SCAN and dim == axis):
            continue
        if roots[0].kind is RootKind.UPDATE and not _is_adjacent(lowering, roots[0], dim):
            continue
        score = sum(_score(lowering, access, dim) for access in body.accesses)
        score -= 1.0 if dim in folds else 0.0
        score -= 3.0 if size < 8 else 0.0
        if best is None or score >= best[0]:
            best = (score, dim)
    return None if best is None else best[1]


def _is_adjacent(lowering: Lowering, root: Root, dim: int) -> bool:
    """Whether a root's addresses along a dimension are those of neighbours."""
    place = tuple(loop_coord(each) for each in range(len(root.space)))
    access = MemoryAccess(root.values[0], normalized(place, root.space), root.op)
    stride = stride_along(lowering.bufferization.structure, access, dim)
    return stride is not None and not stride.jumps and stride.as_int() == 1


def can_vectorize(root: Root) -> bool:
    """Whether the combine function of a fold works on vectors: it holds no control flow."""
    if not isinstance(root.op, CombineOp) or root.kind is RootKind.MATERIALIZE:
        return True
    return not any(op.regions for op in root.op.regions[0].block.ops)


def choose_lanes(lowering: Lowering, size: int, body: NestBody, is_fold: bool = False) -> int:
    """The lanes of one vector along a dimension of `size` elements: a power of two."""
    machine = lowering.machine
    native = max(1, machine.vector_bytes * 8 // body.widest_bits)
    streams = len(body.accesses)
    vectors = 2 if body.is_heavy or streams > _HEAVY_STREAMS or body.num_ops > _HEAVY_OPS else 4
    if machine.num_registers < 32:
        is_light = streams <= _LIGHT_STREAMS and body.cost <= _LIGHT_COST and not body.is_heavy
        is_latent = is_fold and is_light and size >= _LATENT_VECTORS * native
        vectors = 4 if is_latent else 1 if streams > _HEAVY_STREAMS else 2
    lanes = min(native * vectors, 1 << (size.bit_length() - 1))
    while lanes > native and size % lanes:
        lanes //= 2
    return lanes


def chunks(size: int, lanes: int) -> list[tuple[int, int, int]]:
    """(start, count, lanes) of the runs of vectors that cover `size` elements."""
    result = [(0, size // lanes, lanes)]
    start = size - size % lanes
    while start < size:
        rest = 1 << ((size - start).bit_length() - 1)
        result.append((start, 1, rest))
        start += rest
    return result
