"""O = softmax(Q K^T / sqrt(D)) V at T2: a role that loads, and groups of 64 query rows each.

All are (heads * length) × D bf16; the length is a multiple of the rows and of the keys of a
program. `order` is that of products and softmax: "straight", or "ahead" with the scores of the
next keys running while the softmax of these is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from tests.roles.gemm import shared
from tests.roles.writer import Values, Writer
from tilewright.ir.encoding import laid_out, layout_of
from tilewright.ir.op import build
from tilewright.ir.plans import REGISTERS
from tilewright.ir.types import bf16, f32, i32, pointer_to, shape_of
from tilewright.layout.build import wgmma_accumulator
from tilewright.ops.creation.ir import SplatOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.reduction.ir import ReduceOp, ReduceReturnOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, ReshapeOp

Q, K, V, O, LENGTH, TOTAL, DEPTH = range(7)
CHUNK = 64
_LOWEST = -(2.0**97)
_LANE_COLUMNS = 8
"""Columns of a group whose sums the lanes of a row keep by themselves until the end."""


@dataclass(frozen=True)
class Attention:
    """The parameters of a program; with `turns` replicas compute their scores in turn."""

    keys: int = 128
    depth: int = 128
    slots: int = 2
    replicas: int = 2
    order: str = "straight"
    turns: bool = False
    registers: tuple[int, int] = (24, 240)

    @property
    def rows(self) -> int:
        """The query rows of a program."""
        return 64 * self.replicas

    def module(self) -> ModuleOp:
        """The program, its shared memory not yet placed."""
        return _Builder(self).module()


class _Builder:
    def __init__(self, program: Attention) -> None:
        self.program = p = program
        self.write = w = Writer([pointer_to(bf16)] * 4 + [i32] * 3)
        blocks = ((p.rows, p.depth), (p.keys, p.depth), (p.keys, p.depth), (CHUNK, CHUNK))
        tiles = [TensorType(bf16, shape) for shape in blocks]
        self.maps = [
            w.tensor_map(base, (TOTAL, DEPTH), (DEPTH,), tile)
            for base, tile in zip((Q, K, V, O), tiles, strict=True)
        ]
        self.zero, self.one = w.constant(0), w.constant(1)

    def module(self) -> ModuleOp:
        p, w = self.program, self.write
        self.q = w.ring("q", [w.alloc(shared((p.rows, p.depth)))], p.replicas)
        tile = shared((p.keys, p.depth), p.slots)
        self.k = w.ring("k", [w.alloc(tile)], p.replicas)
        self.v = w.ring("v", [w.alloc(tile)], p.replicas)
        length = w.top.args[LENGTH]
        per_head = w.op("divsi", length, w.constant(p.rows))
        tile_number = w.program()
        self.base = w.op("muli", w.op("divsi", tile_number, per_head), length)
        inside = w.op("muli", w.op("remsi", tile_number, per_head), w.constant(p.rows))
        self.row = w.op("addi", self.base, inside)
        self.steps = w.op("divsi", length, w.constant(p.keys))
        rows = [("load", 4, 1, p.registers[0]), ("math", 4, p.replicas, p.registers[1])]
        w.roles(rows, [self._load, self._math])
        return w.module()

    # --- load ---

    def _load(self, _: SSAValue) -> None:
        w, p = self.write, self.program
        start = (self.zero, self.zero)
        (tile,) = w.acquire(self.q, start)
        w.fill(self.q, self.zero, self.maps[0], tile, self.row, self.zero)
        w.commit(self.q, start, 2 * p.rows * p.depth)

        def step(i: SSAValue, s: SSAValue, f: SSAValue) -> Values:
            at = w.op("addi", self.base, w.op("muli", i, w.constant(p.keys)))
            for ring, desc in ((self.k, self.maps[1]), (self.v, self.maps[2])):
                (tile,) = w.acquire(ring, (s, f))
                w.fill(ring, s, desc, tile, at, self.zero)
                w.commit(ring, (s, f), 2 * p.keys * p.depth)
            return list(w.seek(self.k, (s, f), self.one))

        w.loop((self.zero, self.steps, self.one), start, step)

    # --- math ---

    def _math(self, replica: SSAValue) -> None:
        w, p = self.write, self.program
        self.stages = [w.alloc(shared((CHUNK, CHUNK))) for _ in range(p.depth // CHUNK)]
        self.scores = laid_out(f32, wgmma_accumulator((64, p.keys), (4, 1), p.keys))
        self.output = laid_out(f32, wgmma_accumulator((64, p.depth), (4, 1), p.depth))
        rows = layout_of(self.scores).slice(1).remove_register_copies()[0]
        assert layout_of(self.output).slice(1).remove_register_copies()[0] == rows
        self.per_row = laid_out(f32, rows)
        self.sums = self._reduced(self._grouped(self.scores), 1)
        scale = math.log2(math.e) / math.sqrt(p.depth)
        self.scale, self.minus_scale = w.scalar(scale, f32), w.scalar(-scale, f32)
        (query,) = w.wait(self.q, (self.zero, self.zero))
        self.query = w.part(query, replica, (64, p.depth))
        output = w.splat(0.0, self.output)
        top = w.value(SplatOp, [w.scalar(_LOWEST, f32)], [self.per_row])
        total = w.value(SplatOp, [w.scalar(0.0, f32)], [self.sums])
        order = self._ahead if p.order == "ahead" else self._straight
        output, total = order(output, top, total)
        w.release(self.q, self.zero)
        self._store(output, total, w.op("addi", self.row, w.op("muli", replica, w.constant(64))))

    def _straight(self, output, top, total) -> tuple[SSAValue, SSAValue]:
        w = self.write

        def step(_: SSAValue, output, top, total, s: SSAValue, f: SSAValue) -> Values:
            (key,) = w.wait(self.k, (s, f))
            if self.program.turns:
                w.take_turn("scores")
            (scores,) = w.dot_wait(0, self._score(key))
            w.release(self.k, s)
            if self.program.turns:
                w.pass_turn("scores")
            # Waiting for the values here, not behind the softmax, keeps ptxas from computing parts
            # of that before the turn is passed: faster with three groups, slower with two.
            (value,) = w.wait(self.v, (s, f))
            top, total, alpha, weights = self._softmax(scores, top, total)
            output = self._rescaled(output, alpha)
            (output,) = w.dot_wait(0, self._weigh(self._narrow(weights), value, output))
            w.release(self.v, s)
            return [output, top, total, *w.seek(self.k, (s, f), self.one)]

        bounds = (self.zero, self.steps, self.one)
        start = [output, top, total, self.zero, self.zero]
        output, _, total, *_ = w.loop(bounds, start, step)
        return output, total

    def _ahead(self, output, top, total) -> tuple[SSAValue, SSAValue]:
        """Scores of the next keys, then the sum of these; the softmax runs beside that sum."""
        w = self.write
        start = (self.zero, self.zero)
        (key,) = w.wait(self.k, start)
        (scores,) = w.dot_wait(0, self._score(key))
        w.release(self.k, self.zero)
        top, total, _, weights = self._softmax(scores, top, total)
        narrow = self._narrow(weights)

        def step(_, output, narrow, top, total, s: SSAValue, f: SSAValue) -> Values:
            s2, f2 = w.seek(self.k, (s, f), self.one)
            (key,) = w.wait(self.k, (s2, f2))
            scores = self._score(key)
            (value,) = w.wait(self.v, (s, f))
            output = self._weigh(narrow, value, output)
            (scores,) = w.dot_wait(1, scores)
            w.release(self.k, s2)
            top, total, alpha, weights = self._softmax(scores, top, total)
            output, weights = w.dot_wait(0, output, weights)
            w.release(self.v, s)
            narrow = self._narrow(weights)
            return [self._rescaled(output, alpha), narrow, top, total, s2, f2]

        bounds = (self.one, self.steps, self.one)
        carried = [output, narrow, top, total, *start]
        output, narrow, _, total, s, f = w.loop(bounds, carried, step)
        (value,) = w.wait(self.v, (s, f))
        (output,) = w.dot_wait(0, self._weigh(narrow, value, output))
        w.release(self.v, s)
        return output, total

    # --- arithmetic ---

    def _score(self, key: SSAValue) -> SSAValue:
        w, p = self.write, self.program
        zero = w.splat(0.0, self.scores)
        return w.dot(self.query, w.transposed(key), zero, p.keys)

    def _weigh(self, weights: SSAValue, value: SSAValue, output: SSAValue) -> SSAValue:
        return self.write.dot(weights, value, output, self.program.depth, a_place=REGISTERS)

    def _narrow(self, weights: SSAValue) -> SSAValue:
        return self.write.op("truncf", weights, to=laid_out(bf16, layout_of(weights.type)))

    def _softmax(self, scores, top, total) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
        """The new maximum and sums, what the old ones are scaled by, and the weights."""
        w = self.write
        new = w.op("maxnumf", top, self._fold(scores, 1, "arith.maxnumf", self.per_row))
        scale = w.value(SplatOp, [self.scale], [self.per_row])
        alpha = w.op("math.exp2", w.op("mulf", w.op("subf", top, new), scale))
        shift = w.op("mulf", new, w.value(SplatOp, [self.minus_scale], [self.per_row]))
        each = w.value(SplatOp, [self.scale], [self.scores])
        weights = w.op(
            "math.exp2", w.op("math.fma", scores, each, self._spread(shift, self.scores))
        )
        grouped = w.value(ReshapeOp, [weights], [self._grouped(self.scores)])
        sums = self._fold(grouped, 1, "arith.addf", self.sums)
        total = w.op("math.fma", total, self._spread(alpha, self.sums), sums)
        return new, total, alpha, weights

    def _rescaled(self, output: SSAValue, alpha: SSAValue) -> SSAValue:
        return self.write.op("mulf", output, self._spread(alpha, self.output))

    def _grouped(self, type_: Attribute) -> Attribute:
        """A tile of rows as groups of columns: what lanes have alone stands in the last dim."""
        rows, columns = shape_of(type_)
        shape = (rows, columns // _LANE_COLUMNS, _LANE_COLUMNS)
        return laid_out(f32, layout_of(type_).reshape(shape))

    def _reduced(self, type_: Attribute, axis: int) -> Attribute:
        return laid_out(f32, layout_of(type_).slice(axis).remove_register_copies()[0])

    def _fold(self, tile: SSAValue, axis: int, name: str, to: Attribute) -> SSAValue:
        w = self.write
        block = Block(arg_types=[f32, f32])
        location = w.block.last_op.location  # type: ignore[union-attr]  # the tile's
        folded = build(ELEMENTWISE[name], block.args, [f32], location=location)
        block.add_ops([folded, build(ReduceReturnOp, folded.results, location=location)])
        properties = {"axis": IntegerAttr(axis, i32)}
        return w.emit(ReduceOp, [tile], [to], properties, [Region(block)]).results[0]

    def _spread(self, rows: SSAValue, to: Attribute) -> SSAValue:
        w = self.write
        column = laid_out(
            f32, layout_of(to).shrink((shape_of(to)[0], 1)).remove_register_copies()[0]
        )
        made = w.value(ExpandDimsOp, [rows], [column], {"axis": IntegerAttr(1, i32)})
        return w.value(BroadcastOp, [made], [to])

    def _store(self, output: SSAValue, total: SSAValue, row: SSAValue) -> None:
        w, p = self.write, self.program
        total = self._fold(total, 1, "arith.addf", self.per_row)
        one = w.value(SplatOp, [w.scalar(1.0, f32)], [self.per_row])
        output = self._rescaled(output, w.op("divf", one, total))
        narrow = self._narrow(output)
        chunk = laid_out(bf16, wgmma_accumulator((64, CHUNK), (4, 1), CHUNK))
        for number in range(p.depth // CHUNK):
            w.store_local(w.columns(narrow, number, chunk), self.stages[number])
        w.fence()
        w.barrier()
        for number in range(p.depth // CHUNK):
            at = w.constant(number * CHUNK)
            w.store_block(self.maps[3], self.stages[number], row, at)
        w.wait_stores(0)
