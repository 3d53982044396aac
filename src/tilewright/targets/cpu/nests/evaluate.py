"""Evaluates tile values at indices: the body of every nest.

`element` gives the C2 value of a tile at `coords`: a vector where the index moves with the
lane loop and vectors are asked for, else a scalar. What does not vary in a loop is computed
outside of it (the emitter's doing), and nothing is computed twice in one nest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import field

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import (
    element_of,
    i32,
    is_integer,
    is_pointer,
    shape_of,
    vector_of,
    width_bits,
)
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable
from tilewright.support.worklist import needed_first
from tilewright.targets.cpu.nests import combining
from tilewright.targets.cpu.nests.coordinates import (
    LANE_LOOP,
    Coord,
    Coords,
    combine,
    folded_coords,
    normalized,
    source_coords,
)
from tilewright.targets.cpu.nests.emitter import Emitter, MemoKey, wrapped
from tilewright.targets.cpu.nests.masks import NO_MASK, segments
from tilewright.targets.cpu.nests.spreading import can_spread, is_near, read_near, spread
from tilewright.targets.cpu.ops import GatherOp, ScatterOp, StoreOp
from tilewright.targets.cpu.ops import LoadOp as CpuLoadOp
from tilewright.targets.cpu.report import Access
from tilewright.targets.cpu.schedule.inline import is_tile, num_folded, owner
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.storage import Buffer

ElementRule = Callable[["Evaluator", Operation, Coords, bool], SSAValue]
ELEMENT_RULES: RuleTable[ElementRule] = RuleTable("cpu elements")
"""How one element or a vector of an op's tile is computed, where that is no plain arithmetic."""


@dataclass(frozen=True, eq=False)
class Request:
    """A value that is wanted at normalized coordinates, and what it is remembered under."""

    value: SSAValue
    coords: Coords
    wide: bool
    key: MemoKey


@dataclass
class Evaluator:
    """Evaluates tiles in one nest; `lanes` elements per vector along the lane loop.

    `variables` holds each open loop's variable, or its fixed value; `fresh` are the tiles that
    this nest makes and does not read back; `is_whole`, `second_lane`: `piecewise`;
    `nonnegative`: `dividends`.
    """

    lowering: Lowering
    emit: Emitter
    lanes: int = 1
    variables: dict[int, SSAValue | int] = field(default_factory=dict)
    fresh: set[SSAValue] = field(default_factory=set)
    accesses: dict[Operation, Access] = field(default_factory=dict)
    assumed: dict[tuple[SSAValue, Coords], SSAValue] = field(default_factory=dict)
    nonnegative: set[tuple[SSAValue, Coords]] = field(default_factory=set)
    chunk: int = 0
    entered: int = 0
    is_streaming: bool = False
    limit: SSAValue | None = None
    is_whole: tuple[bool, frozenset[object]] | None = None
    second_lane: SSAValue | None = None

    def enter_chunk(self, lanes: int) -> None:
        """Start a run of vectors of `lanes`: what other runs computed is not for this one."""
        self.lanes = lanes
        self.chunk = self.entered = self.entered + 1
        self.assumed.clear()
        self.nonnegative.clear()
        self.emit.floor = 0
        self.limit = None

    @contextmanager
    def from_lane(self, lane: SSAValue) -> Generator[None]:
        """Evaluate scalars at a lane (i32) of this chunk that is known when the program runs."""
        chunk, first = self.chunk, self.variables[LANE_LOOP]
        start = self.emit.index(first) if isinstance(first, int) else first
        self.variables[LANE_LOOP] = self.emit.integer("addi", start, lane)
        self.chunk = self.entered = self.entered + 1
        yield
        self.chunk, self.variables[LANE_LOOP] = chunk, first

    @contextmanager
    def without_assumptions(self) -> Generator[None]:
        """Evaluate what may run where a chunk does not: an assumption may not hold there.

        What is the same in all lanes goes to a loop outside of the chunk's.
        """
        saved = self.assumed, self.nonnegative, self.emit.floor
        self.assumed, self.nonnegative, self.emit.floor = {}, set(), 0
        yield
        self.assumed, self.nonnegative, self.emit.floor = saved

    def limit_lanes(self, start: SSAValue, bound: SSAValue) -> None:
        """Let accesses of this chunk touch only elements start + lane < bound."""
        emit = self.emit
        lanes = emit.integer("addi", emit.splat(start, self.lanes), emit.iota(i32, self.lanes))
        self.limit = emit.compare("slt", lanes, emit.splat(bound, self.lanes))

    def limits(self) -> tuple[SSAValue, ...]:
        """The mask of what a chunk reads of buffers, if any.

        A chunk that starts at a line of a store may reach beyond the end of a buffer.
        """
        return () if self.limit is None else (self.limit,)

    def element(self, value: SSAValue, coords: Coords, vector: bool = True) -> SSAValue:
        """The C2 value of `value` at `coords`."""
        if not is_tile(value):
            return self.lowering.scalar(value)
        wanted = self._request(value, coords, vector)
        found = self._known(wanted)
        if found is not None:
            return found
        for request in needed_first(wanted, self._needs, self._is_known):
            found = self._evaluate(request.value, request.coords, request.wide)
            self.emit.remember(request.key, found)
        assert found is not None
        return found

    def _request(self, value: SSAValue, coords: Coords, vector: bool) -> Request:
        coords = normalized(coords, shape_of(value.type))
        moves = any(c.lane_scale() for c in coords)
        wide = vector and self.lanes > 1 and moves
        # What is computed under an assumption is not for the chunks that do not make it.
        key = ("element", value, coords, wide, self.chunk if moves or self.assumed else 0)
        return Request(value, coords, wide, key)

    def _known(self, request: Request) -> SSAValue | None:
        if self.assumed:
            known = self.assumed.get((request.value, request.coords))
            if known is not None:
                return known
        return self.emit.recall(request.key)

    def _is_known(self, request: Request) -> bool:
        return self._known(request) is not None

    def _needs(self, request: Request) -> list[Request]:
        """What `_evaluate` asks for, in its order: all but what loads and gathers do."""
        value, coords, wide = request.value, request.coords, request.wide
        if self._is_read_back(value):
            return []
        op = owner(value)
        assert isinstance(value, OpResult) and op is not None
        if wide and is_integer(value.type) and self._lane_step(value, coords) is not None:
            return [self._request(value, coords, False)]
        source = source_coords(op, coords, value.index)
        if source is not None:
            return [self._request(_source_of(op, value), source, wide)]
        if num_folded(op) > 1:
            places = folded_coords(op, coords)
            return [self._request(v, place, wide) for place in places for v in op.operands]
        if isinstance(op, ElementwiseOp):
            tiles = (operand for operand in op.operands if is_tile(operand))
            return [self._request(operand, coords, wide) for operand in tiles]
        return []

    def _is_read_back(self, value: SSAValue) -> bool:
        return value not in self.fresh and self.lowering.bufferization.is_stored(value)

    def lanes_of_element(self, value: SSAValue, coords: Coords) -> SSAValue:
        """The value as a full vector, splatted where it is the same in all lanes."""
        return self.emit.splat(self.element(value, coords), self.lanes)

    def index(self, coord: Coord) -> SSAValue:
        """The i32 scalar index at the first lane."""
        emit, offset = self.emit, coord.offset
        total: SSAValue | None = None
        for loop, scale in coord.terms:
            variable = self.variables[loop]
            if isinstance(variable, int):
                offset += scale * variable
                continue
            scaled = variable
            if scale != 1:
                scaled = emit.integer("muli", variable, emit.index(scale))
            total = scaled if total is None else emit.integer("addi", total, scaled)
        if total is None:
            return emit.index(offset)
        return emit.integer("addi", total, emit.index(offset)) if offset else total

    def lane_stride(self, value: SSAValue, coords: Coords) -> tuple[int | None, bool]:
        """The change from lane to lane where it is a known integer, and whether it may jump.

        That of an address may be assumed; `_stepped` asks for what is exact (`affine.stride`).
        """
        total, jumps = 0, False
        strides = self.lowering.bufferization.structure.strides(value)
        for stride, coord in zip(strides, coords, strict=True):
            scale = coord.lane_scale()
            if scale == 0:
                continue
            constant = None if stride is None else stride.as_int()
            if stride is None or constant is None or (jumps and stride.jumps):
                return None, False
            total += scale * constant
            jumps = jumps or stride.jumps
        return total, jumps

    def buffer_pointer(self, buffer: Buffer, coords: Coords) -> SSAValue:
        """The address of an element of a materialised tile, at the first lane."""
        coords = normalized(coords, buffer.shape)
        linear = combine(list(zip(coords, buffer.strides(), strict=True)))
        return self.emit.advance(buffer.base, self.index(linear))

    def read_buffer(self, buffer: Buffer, coords: Coords, wide: bool) -> SSAValue:
        """A scalar or a vector out of a materialised tile."""
        emit = self.emit
        linear = combine(list(zip(coords, buffer.strides(), strict=True)))
        pointer = self.buffer_pointer(buffer, coords)
        if not wide:
            return emit.pure(CpuLoadOp, (pointer,), buffer.element, NO_MASK)
        result = vector_of(buffer.element, self.lanes)
        scale, limit = linear.lane_scale(), self.limits()
        if scale == 1:
            return emit.pure(CpuLoadOp, (pointer, *limit), result, segments(1, len(limit), 0))
        if is_near(scale) and not limit and not is_pointer(buffer.element):
            return read_near(emit, self.lanes, pointer, result, scale)
        offsets = emit.iota(i32, self.lanes, scale)
        sizes = segments(1, 1, len(limit), 0)
        return emit.pure(GatherOp, (pointer, offsets, *limit), result, sizes)

    def write_buffer(self, buffer: Buffer, coords: Coords, value: SSAValue) -> None:
        """Write a scalar or a vector into a materialised tile."""
        self.write_strided(buffer, buffer.strides(), 0, normalized(coords, buffer.shape), value)

    def write_strided(
        self,
        buffer: Buffer,
        strides: tuple[int, ...],
        offset: int,
        coords: Coords,
        value: SSAValue,
    ) -> None:
        """Write at offset + Σ index × stride of a buffer."""
        emit = self.emit
        linear = combine([(Coord((), offset), 1), *zip(coords, strides, strict=True)])
        pointer = emit.advance(buffer.base, self.index(linear))
        scale = linear.lane_scale()
        lanes = self.lanes if scale else 1
        value = emit.extend(emit.splat(value, lanes), buffer.element)
        if scale in (0, 1) or lanes == 1:
            emit.effect(StoreOp, (pointer, value))
            return
        if can_spread(self.lowering.machine, scale) and not is_pointer(buffer.element):
            for start, part, inside in spread(emit, lanes, value, None, scale):
                emit.effect(StoreOp, (emit.advance(pointer, start), part, inside))
            return
        emit.effect(ScatterOp, (pointer, emit.iota(i32, lanes, scale), value))

    def _evaluate(self, value: SSAValue, coords: Coords, wide: bool) -> SSAValue:
        if self._is_read_back(value):
            return self.read_buffer(self.lowering.buffer(value), coords, wide)
        op = owner(value)
        assert isinstance(value, OpResult) and op is not None
        if wide and is_integer(value.type):
            stepped = self._stepped(value, coords)
            if stepped is not None:
                return stepped
        source = source_coords(op, coords, value.index)
        if source is not None:
            return self.element(_source_of(op, value), source, wide)
        if num_folded(op) > 1:
            return self._fold(op, coords, wide)[value.index]
        rule = ELEMENT_RULES.find(type(op))
        if rule is not None:
            return rule(self, op, coords, wide)
        assert isinstance(op, ElementwiseOp), op.name
        return self.elementwise(op, coords, wide)

    def _stepped(self, value: SSAValue, coords: Coords) -> SSAValue | None:
        """An integer that moves by a constant from lane to lane: one splat and one addition."""
        step = self._lane_step(value, coords)
        if step is None:
            return None
        emit = self.emit
        first = self.element(value, coords, False)
        # Lanes count in the type of the value and wrap with it.
        element = element_of(value.type)
        steps = emit.iota(element, self.lanes, wrapped(step, width_bits(element)))
        return emit.integer("addi", emit.splat(first, self.lanes), steps)

    def _lane_step(self, value: SSAValue, coords: Coords) -> int | None:
        """The step of an integer from lane to lane, where it surely is one that is not zero."""
        step, jumps = self.lane_stride(value, coords)
        if not step or jumps:
            return None
        strides = zip(self.lowering.bufferization.structure.strides(value), coords, strict=True)
        is_assumed = any(s is not None and s.is_assumed for s, c in strides if c.lane_scale())
        return None if is_assumed else step

    def _fold(self, op: Operation, coords: Coords, wide: bool) -> list[SSAValue]:
        """A few elements folded one after the other, for all results."""
        first, *others = (
            [self.element(operand, place, wide) for operand in op.operands]
            for place in folded_coords(op, coords)
        )
        for element in others:
            first = combining.apply_combine(self.emit, op, first, element)
        return first

    def elementwise(self, op: Operation, coords: Coords, wide: bool) -> SSAValue:
        """What an elementwise op makes of its operands."""
        operands = [self.element(operand, coords, wide) for operand in op.operands]
        if op.name == "arith.andi" and any(v in self.emit.true_values for v in operands):
            return self.emit.integer("andi", operands[0], operands[1])
        lanes = 1
        if wide and any(shape_of(operand.type) for operand in operands):
            lanes = self.lanes
            start = 1 if isinstance(op, SelectOp) and not shape_of(operands[0].type) else 0
            operands[start:] = [self.emit.splat(operand, lanes) for operand in operands[start:]]
        result = vector_of(element_of(op.results[0].type), lanes)
        return self.emit.pure(type(op), operands, result, dict(op.properties), op.location)


def _source_of(op: Operation, value: OpResult) -> SSAValue:
    """The operand of a shape op, or of a fold of one element, that `value` is read from."""
    takes_several = len(op.results) > 1 and len(op.operands) > 1
    return op.operands[value.index] if takes_several else op.operands[0]


@ELEMENT_RULES.register(ConstantOp)
def _constant(ev: Evaluator, op: Operation, coords: Coords, wide: bool) -> SSAValue:
    assert isinstance(op, ConstantOp)
    return ev.emit.constant(element_of(op.result.type), op.splat_value())


@ELEMENT_RULES.register(MakeRangeOp)
def _range(ev: Evaluator, op: Operation, coords: Coords, wide: bool) -> SSAValue:
    assert isinstance(op, MakeRangeOp)
    (coord,) = coords
    start = op.start.value.data
    first = ev.index(Coord(coord.terms, coord.offset + start))
    if not wide:
        return first
    steps = ev.emit.iota(i32, ev.lanes, coord.lane_scale())
    return ev.emit.integer("addi", ev.emit.splat(first, ev.lanes), steps)


@ELEMENT_RULES.register(SplatOp)
def _first_operand(ev: Evaluator, op: Operation, coords: Coords, wide: bool) -> SSAValue:
    operand = op.operands[0]
    return ev.element(operand, coords if is_tile(operand) else (), wide)
