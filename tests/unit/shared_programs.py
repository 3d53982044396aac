"""Small programs on shared memory for tests, and their traces."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from xdsl.dialects.builtin import (
    FileLineColLoc,
    FunctionType,
    IntAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.dialects.builtin import i32 as I32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure

from tilewright.ir.annotations import annotate
from tilewright.ir.effects import Order
from tilewright.ir.encoding import laid_out, shared_tile
from tilewright.ir.op import TileOp, build
from tilewright.ir.plans import SHARED, ExchangeAttr, ExchangePlan, ProductAttr, ProductPlan
from tilewright.ir.types import f16, i1, i32
from tilewright.layout.build import blocked, shared_linear, shared_swizzled
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.function import FuncOp, ReturnOp
from tilewright.ops.staging import (
    LaidOutDotOp,
    LocalAllocOp,
    LocalBarrierOp,
    LocalLoadOp,
    LocalStoreOp,
    MemdescIndexOp,
)
from tilewright.schedule.exchanges import register_scratch
from tilewright.schedule.placed_accesses import PlacedAccess, PlacedAccesses
from tilewright.support.dataclass import replace
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp

SHAPE = (64, 64)
TILE = laid_out(f16, blocked(SHAPE, (1, 8), (4, 8), (4, 1), (1, 0)))
PLAIN = shared_tile(f16, shared_linear(SHAPE, (1, 0)))
SWIZZLED = shared_tile(f16, shared_swizzled(SHAPE, 2, 128, (1, 0)))
TILE_BYTES = 64 * 64 * 2


def machine_with(max_shared_bytes: int) -> MachineModel:
    """Hopper with so much shared memory."""
    return replace(SM_90A, max_shared_bytes=max_shared_bytes)


@irdl_op_definition
class ExchangeOp(TileOp):
    """An op that needs 512 bytes while it runs."""

    name = "test.exchange"
    traits = traits_def(Pure())


@register_scratch(ExchangeOp)
def _exchange_scratch(op: Operation) -> int:
    return 512


class Program:
    """Writes a kernel op by op; each op has a line of its own."""

    def __init__(self) -> None:
        self.block = self.top = Block(arg_types=[i1, i32])
        self.line = 0
        self.tile = self._emit(ConstantOp, [], TILE, value=IntegerAttr(0, I32))

    def _emit(
        self,
        cls: type[Operation],
        operands: list[SSAValue],
        type_: Attribute,
        **properties: Attribute,
    ) -> SSAValue:
        return self.add(build(cls, operands, [type_], properties)).results[0]

    def add(self, op: Operation) -> Operation:
        """Append an op on the next line."""
        self.line += 1
        op.location = FileLineColLoc(StringAttr("kernel.py"), IntAttr(self.line), IntAttr(0))
        self.block.add_op(op)
        return op

    def constant(self, value: int) -> SSAValue:
        """A number."""
        return self._emit(ConstantOp, [], i32, value=IntegerAttr(value, I32))

    def alloc(self, type_: Attribute = PLAIN, filled: bool = False) -> SSAValue:
        """A shared tile."""
        return self._emit(LocalAllocOp, [self.tile] if filled else [], type_)

    def store(self, tile: SSAValue) -> Operation:
        """A write of a shared tile."""
        return self.add(build(LocalStoreOp, [self.tile, tile]))

    def load(self, tile: SSAValue) -> SSAValue:
        """A read of a shared tile."""
        return self._emit(LocalLoadOp, [tile], TILE)

    def index(self, tile: SSAValue, slot: SSAValue, type_: Attribute = PLAIN) -> SSAValue:
        """One slot of a shared tile."""
        return self._emit(MemdescIndexOp, [tile, slot], type_)

    def dot(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """A product that reads both operands asynchronously."""
        plan = ProductPlan("wgmma", (64, 64, 16), (4, 1), SHARED, SHARED)
        return self._emit(
            LaidOutDotOp,
            [a, b, self.tile],
            TILE,
            product=ProductAttr(plan),
        )

    def exchange(self) -> Operation:
        """An op with scratch."""
        op = self.add(build(ExchangeOp))
        annotate(op, ExchangeAttr(ExchangePlan("memory", 512)))
        return op

    def barrier(self) -> Operation:
        """An explicit barrier."""
        return self.add(build(LocalBarrierOp))

    def fence(self) -> Operation:
        """An explicit fence."""
        return self.add(build(FenceAsyncSharedOp))

    def inside(self, write: Callable[[], None], *types: Attribute) -> Block:
        """A block written by a function, without its terminator."""
        outside, self.block = self.block, Block(arg_types=types)
        write()
        inner, self.block = self.block, outside
        return inner

    def loop(self, write: Callable[[], None], low: int | None = None) -> Operation:
        """A loop without carried values; from `low` to 8 where it is known to run."""
        first = self.top.args[1] if low is None else self.constant(low)
        bounds = [first, self.constant(8), self.constant(1)]
        body = self.inside(write, i32)
        body.add_op(build(YieldOp))
        return self.add(build(ForOp, bounds, regions=[Region(body)]))

    def branch(self, yes: Callable[[], None], no: Callable[[], None] | None = None) -> Operation:
        """A branch on the first argument."""
        sides = [self.inside(yes)] if no is None else [self.inside(yes), self.inside(no)]
        for side in sides:
            side.add_op(build(YieldOp))
        regions = [Region(side) for side in sides] + ([Region()] if no is None else [])
        return self.add(build(IfOp, [self.top.args[0]], regions=regions))

    def repeat(self, test: Callable[[], None], body: Callable[[], None]) -> Operation:
        """A loop on a condition."""
        before, after = self.inside(test), self.inside(body)
        before.add_op(build(ConditionOp, [self.top.args[0]]))
        after.add_op(build(YieldOp))
        return self.add(build(WhileOp, regions=[Region(before), Region(after)]))

    def kernel(self) -> FuncOp:
        """The finished kernel."""
        self.add(build(ReturnOp))
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr("kernel"),
            "function_type": FunctionType.from_lists([i1, i32], []),
        }
        kernel = build(FuncOp, [], [], properties, [Region(self.top)])
        assert isinstance(kernel, FuncOp)
        return kernel


def random_program(random: Random, orders: float = 0.0) -> FuncOp:
    """A random program; `orders` is how likely an op is a barrier or a fence."""
    program = Program()
    tiles = [program.alloc(random.choice((PLAIN, SWIZZLED))) for _ in range(3)]

    def steps(depth: int) -> None:
        for _ in range(random.randint(1, 4)):
            step(depth)

    def step(depth: int) -> None:
        if random.random() < orders:
            program.barrier() if random.random() < 0.7 else program.fence()
            return
        kind = random.choice(("store", "load", "dot", "exchange", "fresh", "nested"))
        if kind == "store":
            program.store(random.choice(tiles))
        elif kind == "load":
            program.load(random.choice(tiles))
        elif kind == "dot":
            program.dot(random.choice(tiles), random.choice(tiles))
        elif kind == "exchange":
            program.exchange()
        elif kind == "fresh":
            program.load(program.alloc(filled=True))
        elif depth < 3:
            nested(depth + 1)

    def nested(depth: int) -> None:
        def inner() -> None:
            steps(depth)

        kind = random.choice(("loop", "loop", "branch", "else", "while"))
        if kind == "loop":
            program.loop(inner, random.choice((None, 0)))
        elif kind == "while":
            program.repeat(inner, inner)
        else:
            program.branch(inner, inner if kind == "else" else None)

    steps(0)
    steps(0)
    for tile in tiles:
        program.load(tile)
    return program.kernel()


def trace(kernel: FuncOp, random: Random) -> list[PlacedAccess | Order]:
    """The accesses and barriers of one run; branches and trip counts are random."""
    accesses = PlacedAccesses()
    steps: list[PlacedAccess | Order] = []

    def run(block: Block) -> None:
        for op in block.ops:
            if isinstance(op, IfOp):
                side = op.regions[random.randint(0, 1)]
                if side.blocks:
                    run(side.block)
            elif isinstance(op, ForOp):
                known = isinstance(op.lb.owner, ConstantOp)
                for _ in range(random.randint(1 if known else 0, 3)):
                    run(op.body.block)
            elif isinstance(op, WhileOp):
                run(op.before_region.block)
                while random.random() < 0.5:
                    run(op.after_region.block)
                    run(op.before_region.block)
            else:
                steps.extend(accesses.steps(op))

    run(kernel.body.block)
    return steps


def first_hazard(steps: list[PlacedAccess | Order]) -> tuple[int, int] | None:
    """The first two accesses of a trace that nothing orders; every pair is looked at."""
    for later, access in enumerate(steps):
        if not isinstance(access, PlacedAccess):
            continue
        for earlier in range(later):
            before = steps[earlier]
            if not isinstance(before, PlacedAccess):
                continue
            between = steps[earlier:later]
            if before.conflicts(access) and Order.BARRIER not in between:
                return earlier, later
            if before.hides_from(access) and not _is_shown(between):
                return earlier, later
    return None


def _is_shown(between: list[PlacedAccess | Order]) -> bool:
    if Order.FENCE not in between:
        return False
    return Order.BARRIER in between[between.index(Order.FENCE) :]
