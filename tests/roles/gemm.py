"""C = A @ B at T2: a role that loads, and one, two or three warp groups that multiply.

`split` says what the warp groups share: "m" the rows of one tile, "tiles" the tiles, in turns.
A is M×K, B is K×N, C is M×N, all bf16 and row-major.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue

from tests.roles.writer import Position, Values, Writer
from tilewright.ir.encoding import laid_out, shared_tile
from tilewright.ir.types import bf16, f32, i32, pointer_to
from tilewright.layout.build import wgmma_accumulator
from tilewright.ops.rings import RingOp
from tilewright.targets.nvidia.tma.boxes import BoxPlan, plan_boxes

A, B, C, M, N, K = range(6)
CHUNK = 64
"""Rows and columns of what one store of the epilogue takes."""


@dataclass(frozen=True)
class Gemm:
    """The parameters of a program; `late` releases a slot one step behind its product."""

    rows: int = 128
    columns: int = 256
    depth: int = 64
    slots: int = 4
    replicas: int = 2
    split: str = "m"
    persistent: bool = True
    group: int = 8
    late: bool = False
    buffers: int = 2
    registers: tuple[int, int] = (40, 232)
    takes_turns: bool = True

    @property
    def own_rows(self) -> int:
        """The rows of a tile that one replica computes."""
        return self.rows // self.replicas if self.split == "m" else self.rows

    @property
    def chunks(self) -> int:
        """The stores that a replica takes for its tile."""
        return self.columns // CHUNK * (self.own_rows // CHUNK)

    @property
    def slot_bytes(self) -> int:
        """What one fill of the ring brings."""
        return 2 * self.depth * (self.rows + self.columns)

    def module(self) -> ModuleOp:
        """The program, its shared memory not yet placed."""
        return _Builder(self).module()


def shared(shape: tuple[int, int], slots: int = 1):
    """The shared tile of a block that the copy engine moves."""
    plan = plan_boxes(shape, 2)
    assert isinstance(plan, BoxPlan)
    return shared_tile(bf16, plan.layout(), slots)


class _Builder:
    def __init__(self, program: Gemm) -> None:
        self.program = p = program
        arguments = [pointer_to(bf16)] * 3 + [i32] * 3
        self.write = w = Writer(arguments)
        blocks = ((p.rows, p.depth), (p.depth, p.columns), (CHUNK, CHUNK))
        tiles = [TensorType(bf16, shape) for shape in blocks]
        self.a_map = w.tensor_map(A, (M, K), (K,), tiles[0])
        self.b_map = w.tensor_map(B, (K, N), (N,), tiles[1])
        self.c_map = w.tensor_map(C, (M, N), (N,), tiles[2])
        self.zero, self.one = w.constant(0), w.constant(1)

    def module(self) -> ModuleOp:
        p, w = self.program, self.write
        a = w.alloc(shared((p.rows, p.depth), p.slots))
        b = w.alloc(shared((p.depth, p.columns), p.slots))
        consumers = p.replicas if p.split == "m" else 1
        self.ring = w.ring("ab", [a, b], consumers)
        self.gm = self._parts(M, p.rows)
        self.gn = self._parts(N, p.columns)
        self.steps = self._parts(K, p.depth)
        self.tiles = w.op("muli", self.gm, self.gn)
        rows = [("load", 4, 1, p.registers[0]), ("math", 4, p.replicas, p.registers[1])]
        w.roles(rows, [self._load, self._math])
        return w.module()

    def _parts(self, argument: int, size: int) -> SSAValue:
        w = self.write
        length = w.top.args[argument]
        return w.op("divsi", w.op("addi", length, w.constant(size - 1)), w.constant(size))

    def _next(self, ring: RingOp, at: Position) -> Position:
        return self.write.seek(ring, at, self.one)

    # --- tiles ---

    def _over_tiles(self, first, step, carried: Values, body) -> Values:
        """Call `body` for each tile of this program; one tile a program without persistence."""
        w = self.write
        if self.program.persistent:
            return w.loop((first, self.tiles, step), carried, body)
        return list(body(first, *carried))

    def _origin(self, tile: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first row and column of a tile: `group` rows of tiles at a time, down first."""
        w, p = self.write, self.program
        group = w.constant(p.group)
        per_group = w.op("muli", self.gn, group)
        first = w.op("muli", w.op("divsi", tile, per_group), group)
        height = w.op("minsi", w.op("subi", self.gm, first), group)
        inside = w.op("remsi", tile, per_group)
        row = w.op("addi", first, w.op("remsi", inside, height))
        column = w.op("divsi", inside, height)
        return (
            w.op("muli", row, w.constant(p.rows)),
            w.op("muli", column, w.constant(p.columns)),
        )

    # --- load ---

    def _load(self, _: SSAValue) -> None:
        w, p = self.write, self.program

        def tile(t: SSAValue, s: SSAValue, f: SSAValue) -> Values:
            row, column = self._origin(t)

            def step(k: SSAValue, s: SSAValue, f: SSAValue) -> Values:
                at = w.op("muli", k, w.constant(p.depth))
                a, b = w.acquire(self.ring, (s, f))
                w.fill(self.ring, s, self.a_map, a, row, at)
                w.fill(self.ring, s, self.b_map, b, at, column)
                w.commit(self.ring, (s, f), p.slot_bytes)
                return list(self._next(self.ring, (s, f)))

            return w.loop((self.zero, self.steps, self.one), [s, f], step)

        self._over_tiles(w.program(), w.programs(), [self.zero, self.zero], tile)

    # --- math ---

    def _math(self, replica: SSAValue) -> None:
        w, p = self.write, self.program
        count = min(p.buffers, p.chunks)
        stages = [w.alloc(shared((CHUNK, CHUNK))) for _ in range(count)]
        first, step, s, f = w.program(), w.programs(), self.zero, self.zero
        if p.split == "tiles":
            first = w.op("addi", first, w.op("muli", replica, step))
            step = w.op("muli", step, w.constant(p.replicas))
            s, f = w.seek(self.ring, (s, f), w.op("muli", replica, self.steps))

        def tile(t: SSAValue, s: SSAValue, f: SSAValue) -> Values:
            row, column = self._origin(t)
            if p.split == "m":
                row = w.op("addi", row, w.op("muli", replica, w.constant(p.own_rows)))
            elif p.takes_turns:
                w.take_turn("products")
            total, (s, f) = self._product(replica, (s, f))
            self._store(total, stages, row, column)
            if p.split == "tiles":
                others = w.op("muli", self.steps, w.constant(p.replicas - 1))
                s, f = w.seek(self.ring, (s, f), others)
            return [s, f]

        self._over_tiles(first, step, [s, f], tile)
        w.wait_stores(0)

    def _product(self, replica: SSAValue, at: Position) -> tuple[SSAValue, Position]:
        """The tile of a replica, over all of K."""
        w, p = self.write, self.program
        layout = wgmma_accumulator((p.own_rows, p.columns), (4, 1), p.columns)
        zero = w.splat(0.0, laid_out(f32, layout))

        def multiply(s: SSAValue, f: SSAValue, total: SSAValue) -> SSAValue:
            a, b = w.wait(self.ring, (s, f))
            if p.split == "m":
                a = w.part(a, replica, (p.own_rows, p.depth))
            return w.dot(a, b, total, p.columns)

        def step(k: SSAValue, total: SSAValue, s: SSAValue, f: SSAValue) -> Values:
            (done,) = w.dot_wait(0, multiply(s, f, total))
            w.release(self.ring, s)
            return [done, *self._next(self.ring, (s, f))]

        def late(k: SSAValue, total: SSAValue, s: SSAValue, f: SSAValue, before) -> Values:
            (running,) = w.dot_wait(1, multiply(s, f, total))
            w.release(self.ring, before, w.compare("gt", k, self.zero))
            return [running, *self._next(self.ring, (s, f)), s]

        bounds = (self.zero, self.steps, self.one)
        if not p.late:
            total, s, f = w.loop(bounds, [zero, *at], step)
        else:
            total, s, f, last = w.loop(bounds, [zero, *at, self.zero], late)
        if p.split == "tiles" and p.takes_turns:
            w.pass_turn("products")
        if p.late:
            (total,) = w.dot_wait(0, total)
            w.release(self.ring, last, w.compare("gt", self.steps, self.zero))
        return total, (s, f)

    def _store(self, total: SSAValue, stages: Values, row: SSAValue, column: SSAValue) -> None:
        """The tile in chunks, through shared memory of the replica's own."""
        w, p = self.write, self.program
        layout = wgmma_accumulator((p.own_rows, p.columns), (4, 1), p.columns)
        narrow = w.op("truncf", total, to=laid_out(bf16, layout))
        across = laid_out(bf16, wgmma_accumulator((p.own_rows, CHUNK), (4, 1), CHUNK))
        chunk = laid_out(bf16, wgmma_accumulator((CHUNK, CHUNK), (4, 1), CHUNK))
        number = 0
        for j in range(p.columns // CHUNK):
            strip = w.columns(narrow, j, across)
            at = w.op("addi", column, w.constant(j * CHUNK))
            for i in range(p.own_rows // CHUNK):
                piece = w.rows(strip, i, chunk) if p.own_rows > CHUNK else strip
                below = w.op("addi", row, w.constant(i * CHUNK))
                stage = stages[number % len(stages)]
                w.wait_stores(self._stores_since(number, len(stages)))
                w.barrier()
                w.store_local(piece, stage)
                w.fence()
                w.barrier()
                w.store_block(self.c_map, stage, below, at)
                number += 1

    def _stores_since(self, number: int, stages: int) -> int:
        """How many stores a replica has started since the one that had the stage of a chunk."""
        if number >= stages:
            return stages - 1
        chunks = self.program.chunks
        last = max(i for i in range(chunks) if i % stages == number % stages)
        return chunks - 1 - last + number
