"""Every fact that the analysis claims holds of the values that the interpreter computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.dialects.builtin import i32 as I32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.analysis.affine.tile import AffineTile
from tilewright.analysis.facts import AxisFacts
from tilewright.analysis.ranges import Ranges
from tilewright.interp.evaluate import run_kernel
from tilewright.ir.op import Array, build
from tilewright.ir.types import f32, i1, i8, i32, i64, pointer_to, tile_of
from tilewright.ops.control_flow import ForOp, IfOp, YieldOp
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, SelectOp
from tilewright.ops.function import FuncOp, ReturnOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.ops.program.ir import GetProgramIdOp
from tilewright.ops.shape.ir import (
    BroadcastOp,
    CatOp,
    ExpandDimsOp,
    FlipOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)

Choice = TypeVar("Choice")
SMALL = (1, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24, 32, 48, 64)
EXTENTS = (1, 2, 4, 6, 8, 16, 24, 32)
STARTS = (0, 0, 1, 4, 8, 16, -4, -8, -16, 120)
ODD_EXTENTS = (1, 3, 5, 7, 12, 17, 64)
# By the ends of what 32 bits hold, signed; four products with `ODD` still fit 64 bits.
LAST_STARTS = (0, (1 << 31) - 65, (1 << 31) - 128, -(1 << 31), 64 - (1 << 31), 1000)
ODD = (1, 3, 5, 7, 13, 17, 31, 100, 8, 64)
BINARY = ("addi", "subi", "minsi", "maxsi", "minui", "maxui", "andi", "ori", "xori")
BY_SCALAR = ("muli", "divsi", "divui", "remsi", "remui")


class Writer:
    """Writes random index arithmetic on tiles: of i64 without overflow, of i8 with it."""

    extents: tuple[int, ...] = EXTENTS
    starts: tuple[int, ...] = STARTS
    numbers: tuple[int, ...] = SMALL

    def __init__(self, random: Random, signs: float = 0.0) -> None:
        """`signs`: how often a uniform tile holds a number of either sign."""
        self.random = random
        self.signs = signs
        self.shape = tuple(random.choices(self.extents, k=random.randint(1, 2)))
        arguments = [pointer_to(f32), i64, i64]
        self.block = Block(arg_types=arguments)
        self.scalars: list[SSAValue] = list(self.block.args[1:])
        self.tiles: list[SSAValue] = []
        self.masks: list[SSAValue] = []

    def emit(
        self,
        cls: type[Operation],
        operands: list[SSAValue],
        type_: Attribute,
        **properties: Attribute,
    ) -> SSAValue:
        """Add an op of one result to the current block."""
        op = build(cls, operands, [type_], properties)
        self.block.add_op(op)
        return op.results[0]

    def choose(self, values: Sequence[Choice]) -> Choice:
        """One of some values."""
        return self.random.choice(values)

    def coin(self) -> bool:
        """One of two ways."""
        return self.random.random() < 0.5

    def constant(self, value: int, type_: Attribute = i64) -> SSAValue:
        """A constant scalar."""
        return self.emit(ConstantOp, [], type_, value=IntegerAttr(value, type_))  # pyright: ignore[reportCallIssue]

    def spread(self, scalar: SSAValue) -> SSAValue:
        """A scalar in every element."""
        return self.emit(SplatOp, [scalar], tile_of(scalar.type, self.shape))

    def signed(self) -> SSAValue:
        """A scalar that is not zero, of either sign: one of two constants."""
        condition = self.emit(
            CmpIOp, self.scalars[:2], i1, predicate=IntegerAttr(self.random.randint(0, 5), 64)
        )
        outside, sides = self.block, list[Region]()
        for _ in range(2):
            self.block = Block()
            value = self.constant(self.choose(self.numbers) * self.choose((1, -1)))
            self.block.add_op(build(YieldOp, [value]))
            sides.append(Region(self.block))
        self.block = outside
        self.block.add_op(branch := build(IfOp, [condition], [i64], regions=sides))
        return branch.results[0]

    def uniform(self) -> SSAValue:
        """A tile of equal elements that are not zero: a constant, an argument or of either sign."""
        if self.random.random() < self.signs:
            return self.spread(self.signed())
        if self.coin():
            return self.spread(self.choose(self.scalars[:2]))
        value = self.choose(self.numbers)
        type_ = tile_of(i64, self.shape)
        dense = DenseIntOrFPElementsAttr.from_list(type_, [value])  # pyright: ignore[reportCallIssue]
        return self.emit(ConstantOp, [], type_, value=dense)

    def index(self) -> SSAValue:
        """Consecutive numbers along one dimension, the same along the others."""
        dim = self.random.randrange(len(self.shape))
        extent = self.shape[dim]
        start = self.choose(self.starts)
        value = self.emit(
            MakeRangeOp,
            [],
            tile_of(i32, (extent,)),
            start=IntegerAttr(start, I32),
            end=IntegerAttr(start + extent, I32),
        )
        value = self.emit(ELEMENTWISE["arith.extsi"], [value], tile_of(i64, (extent,)))
        if len(self.shape) == 1:
            return value
        shape = (extent, 1) if dim == 0 else (1, extent)
        value = self.emit(
            ExpandDimsOp, [value], tile_of(i64, shape), axis=IntegerAttr(1 - dim, I32)
        )
        return self.emit(BroadcastOp, [value], tile_of(i64, self.shape))

    def step(self) -> None:
        """Add one random op on tiles."""
        kind = self.choose(tuple(_STEPS))
        _STEPS[kind](self)

    def moved(self) -> None:
        """Elements to other places and back to the shape."""
        tile, type_ = self.choose(self.tiles), tile_of(i64, self.shape)
        kind = self.choose(("reshape", "flip", "trans", "join", "cat"))
        if kind == "flip":
            axis = self.random.randrange(len(self.shape))
            self.tiles.append(self.emit(FlipOp, [tile], type_, axis=IntegerAttr(axis, I32)))
            return
        if kind == "join":
            joined = self.emit(
                JoinOp, [tile, self.choose(self.tiles)], tile_of(i64, (*self.shape, 2))
            )
            split = build(SplitOp, [joined], [type_, type_])
            self.block.add_op(split)
            self.tiles.extend(split.results)
            return
        if kind == "cat":
            twice = tile_of(i64, (2 * self.shape[0], *self.shape[1:]))
            self.emit(CatOp, [tile, self.choose(self.tiles)], twice)
            return
        if kind == "trans" and len(self.shape) == 2:
            order = DenseArrayBase.from_list(I32, [1, 0])
            tile = self.emit(TransOp, [tile], tile_of(i64, self.shape[::-1]), order=order)
        size = int(np.prod(self.shape))
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        outer = self.choose(divisors)
        extra = {"allow_reorder": UnitAttr()} if self.choose(range(10)) == 0 else {}
        middle = self.emit(ReshapeOp, [tile], tile_of(i64, (outer, size // outer)), **extra)
        self.tiles.append(self.emit(ReshapeOp, [middle], type_))

    def binary(self) -> None:
        """Arithmetic on two tiles."""
        name = self.choose(BINARY)
        operands = [self.choose(self.tiles), self.choose(self.tiles)]
        self.tiles.append(self.emit(ELEMENTWISE[f"arith.{name}"], operands, operands[0].type))

    def by_scalar(self) -> None:
        """Products, quotients and remainders by elements that are equal in groups."""
        name = self.choose(BY_SCALAR)
        operands = [self.choose(self.tiles), self.uniform()]
        if self.masks and self.coin():
            sides = [self.choose(self.masks), operands[1], self.uniform()]
            operands[1] = self.emit(SelectOp, sides, operands[1].type)
        self.tiles.append(self.emit(ELEMENTWISE[f"arith.{name}"], operands, operands[0].type))

    def by_bits(self) -> None:
        """Shifts and masks by constants."""
        name = self.choose(("shli", "shrsi", "shrui", "andi"))
        low, high = (-16, 15) if name == "andi" else (0, 5)
        if name == "andi":
            bits = self.choose((3, 7, 15, -4, -8, -16, 5, low, high))
        else:
            bits = self.random.randint(low, high)
        operands = [self.choose(self.tiles), self.spread(self.constant(bits))]
        self.tiles.append(self.emit(ELEMENTWISE[f"arith.{name}"], operands, operands[0].type))

    def compared(self) -> None:
        """A mask."""
        left, right = self.choose(self.tiles), self.choose([*self.tiles, self.uniform()])
        operands = [left, right] if self.coin() else [right, left]
        predicate = IntegerAttr(self.random.randint(0, 9), 64)
        self.masks.append(self.emit(CmpIOp, operands, tile_of(i1, self.shape), predicate=predicate))

    def selected(self) -> None:
        """One of two tiles by a mask."""
        if not self.masks:
            return
        operands = [self.choose(self.masks), self.choose(self.tiles), self.choose(self.tiles)]
        self.tiles.append(self.emit(SelectOp, operands, operands[1].type))

    def recast(self) -> None:
        """Through a narrower integer."""
        narrow = self.choose((i8, i32))
        name = self.choose(("extsi", "extui"))
        value = self.emit(
            ELEMENTWISE["arith.trunci"], [self.choose(self.tiles)], tile_of(narrow, self.shape)
        )
        self.tiles.append(
            self.emit(ELEMENTWISE[f"arith.{name}"], [value], tile_of(i64, self.shape))
        )

    def narrow(self, tile: SSAValue, element: Attribute = i8) -> SSAValue:
        """The low bits of a tile."""
        return self.emit(ELEMENTWISE["arith.trunci"], [tile], tile_of(element, self.shape))

    def wrapped(self) -> None:
        """Arithmetic on two bytes, which wraps, and back to wide numbers."""
        left, right = self.narrow(self.choose(self.tiles)), self.narrow(self.choose(self.tiles))
        if self.coin():
            left = self.narrow(self.index())
            right = self.spread(self.constant(self.random.randint(-128, 127), i8))
        for name in self.random.sample((*BINARY, "muli", "shrsi", "remui", "divui"), 2):
            if name in ("shrsi", "remui", "divui"):
                right = self.spread(self.constant(self.choose((1, 2, 3, 4)), i8))
            left = self.emit(ELEMENTWISE[f"arith.{name}"], [left, right], left.type)
        predicate = IntegerAttr(self.random.randint(0, 9), 64)
        mask = tile_of(i1, self.shape)
        self.masks.append(self.emit(CmpIOp, [left, right], mask, predicate=predicate))
        name = self.choose(("extsi", "extui"))
        wide = self.emit(ELEMENTWISE[f"arith.{name}"], [left], tile_of(i64, self.shape))
        self.tiles.append(wide)

    def pointers(self) -> None:
        """A tile of pointers, moved twice."""
        base = self.spread(self.block_arguments[0])
        small = self.narrow(self.choose(self.tiles), self.choose((i8, i32)))
        once = self.emit(AddPtrOp, [base, small], base.type)
        self.emit(AddPtrOp, [once, self.choose(self.tiles)], base.type)

    def looped(self) -> None:
        """A tile that a loop carries."""
        init, added = self.choose(self.tiles), self.choose(self.tiles)
        low, high = self.constant(self.choose((0, 4))), self.constant(16)
        by = self.constant(self.choose((4, 3, 8)))
        outside, self.block = self.block, Block(arg_types=[i64, init.type])
        counter, carried = self.block.args
        moved = self.emit(ELEMENTWISE["arith.addi"], [carried, added], init.type)
        result = self.emit(ELEMENTWISE["arith.addi"], [moved, self.spread(counter)], init.type)
        self.block.add_op(build(YieldOp, [result]))
        body, self.block = self.block, outside
        loop = build(ForOp, [low, high, by, init], [init.type], regions=[Region(body)])
        self.block.add_op(loop)
        self.tiles.append(loop.results[0])

    def branched(self) -> None:
        """A tile from one of two sides."""
        predicate = IntegerAttr(2, 64)
        condition = self.emit(CmpIOp, self.scalars[:2], i1, predicate=predicate)
        sides = []
        for _ in range(2):
            block = Block()
            block.add_op(build(YieldOp, [self.choose(self.tiles)]))
            sides.append(Region(block))
        type_ = tile_of(i64, self.shape)
        branch = build(IfOp, [condition], [type_], regions=sides)
        self.block.add_op(branch)
        self.tiles.append(branch.results[0])

    def module(self, steps: int, divisor: int) -> ModuleOp:
        """A kernel of so many steps; its first integer argument is a multiple of `divisor`."""
        self.block_arguments = self.block.args
        self.scalars.append(self.constant(self.choose(self.numbers)))
        program = self.emit(GetProgramIdOp, [], i32, axis=IntegerAttr(0, I32))
        wide = self.emit(ELEMENTWISE["arith.extsi"], [program], i64)
        block = self.emit(
            ELEMENTWISE["arith.muli"], [wide, self.constant(self.choose(self.numbers))], i64
        )
        self.tiles = [self.index(), self.index(), self.uniform(), self.spread(block)]
        for _ in range(steps):
            self.step()
        self.block.add_op(build(ReturnOp))
        return ModuleOp([_function(self.block, divisor)])


_STEPS = {
    "binary": Writer.binary,
    "by_scalar": Writer.by_scalar,
    "by_bits": Writer.by_bits,
    "compared": Writer.compared,
    "selected": Writer.selected,
    "recast": Writer.recast,
    "wrapped": Writer.wrapped,
    "pointers": Writer.pointers,
    "moved": Writer.moved,
    "looped": Writer.looped,
    "branched": Writer.branched,
}


def _function(block: Block, divisor: int) -> Operation:
    facts = (
        {"tt.divisibility": IntegerAttr(16, I32)},
        {"tt.divisibility": IntegerAttr(divisor, I32)},
    )
    attributes = [DictionaryAttr({**fact}) for fact in (*facts, {})]
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr("kernel"),
        "sym_visibility": StringAttr("public"),
        "function_type": FunctionType.from_lists([a.type for a in block.args], []),
        "arg_attrs": ArrayAttr(attributes),
    }
    return build(FuncOp, [], [], properties, [Region(block)])


def _arguments_of(module: ModuleOp) -> tuple[SSAValue, ...]:
    """The integers that a kernel takes."""
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return function.body.block.args[1:]


class Checker:
    """An observer that compares each value with what is claimed of it."""

    def __init__(self, facts: AxisFacts, seed: int) -> None:
        self.facts = facts
        self.ranges = Ranges()
        self.seed = seed
        self.checked = 0
        self.scalars: dict[SSAValue, int] = {}

    def after_op(
        self, operation: Operation, program: tuple[int, int, int], results: tuple[object, ...]
    ) -> None:
        """Check the results of an op."""
        for result, value in zip(operation.results, results, strict=True):
            array = np.asarray(value)
            if not array.shape:
                self.scalars[result] = int(array)
            if isinstance(operation, SplatOp):
                self.scalars[operation.operands[0]] = int(array.flat[0])
            self.check(operation, result, array)

    def check(self, operation: Operation, result: SSAValue, value: Array) -> None:
        """Check the facts of one value."""
        facts = self.facts.of(result)
        assert value.shape == facts.kind.shape, (self.seed, operation)
        # Groups count modulo the width of their type, pointers and wide numbers do not overflow.
        modulus = 1 << 8 * value.dtype.itemsize if value.dtype == np.int8 else 0
        is_number, value = value.dtype.kind == "i", value.astype(np.int64)
        self.checked += 1
        if is_number:
            least, most = self.ranges.of(result)
            assert ((least <= value) & (value <= most)).all(), (self.seed, operation, least, most)
        if facts.constant is not None and is_number:
            assert (value == facts.constant).all(), (self.seed, operation, facts)
        if facts.is_nonnegative:
            assert (value >= 0).all(), (self.seed, operation, facts)
        assert (value % facts.divisor == 0).all(), (self.seed, operation, facts)
        assert len(facts.divisors) == max(1, value.ndim)
        for dim in range(value.ndim):
            where = (self.seed, operation)
            self.check_along(np.moveaxis(value, dim, -1), facts, dim, where, modulus)

    def check_along(
        self, value: Array, facts: AffineTile, dim: int, where: object, modulus: int
    ) -> None:
        """Check the facts along the last axis of `value`, modulo `modulus` if there is one."""
        along, extent = facts.dims[dim], value.shape[-1]
        assert extent % along.length == 0
        groups = value.reshape(*value.shape[:-1], extent // along.length, along.length)
        step = 0
        for coefficient, factors in along.step.terms:
            step += coefficient * math.prod(self.scalars[factor] for factor in factors)
        steps = np.diff(groups, axis=-1) - step * facts.kind.unit
        assert ((steps % modulus if modulus else steps) == 0).all(), (where, facts, dim, value)
        assert (groups[..., 0] % facts.divisors[dim] == 0).all(), (where, facts, dim, value)
        aligned = facts.aligned_run(dim)
        starts = value[..., ::aligned] // facts.kind.unit
        assert (starts % aligned == 0).all(), (where, facts, dim, value)


@pytest.mark.parametrize("first_seed", range(0, 400, 50))
def test_claimed_facts_hold_of_computed_values(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 50):
        random = Random(seed)
        divisor = random.choice((1, 8, 16))
        first = divisor * random.choice((1, 3, 5, 7, 4))
        module = Writer(random, signs=0.2).module(random.randint(1, 9), divisor)
        checker = Checker(AxisFacts(module), seed)
        arguments = [np.zeros(64, np.float32), first, random.choice((1, 7, 16, 5, 48))]
        checker.scalars.update(zip(_arguments_of(module), arguments[1:], strict=True))
        run_kernel(module, arguments, (3,), observers=[checker])
        assert checker.checked


class OddWriter(Writer):
    """The same on odd sizes, by odd numbers, and next to the ends of 32 bits."""

    extents = ODD_EXTENTS
    starts = LAST_STARTS
    numbers = ODD


@pytest.mark.parametrize("first_seed", range(0, 300, 50))
def test_claimed_facts_hold_of_odd_sizes_and_of_the_last_numbers(first_seed: int) -> None:
    strides: set[int | None] = set()
    for seed in range(first_seed, first_seed + 50):
        random = Random(seed)
        module = OddWriter(random, signs=0.2).module(random.randint(1, 4), 8)
        facts = AxisFacts(module)
        checker = Checker(facts, seed)
        arguments = [np.zeros(64, np.float32), 8 * random.choice((1, 3, 5, 7)), random.choice(ODD)]
        checker.scalars.update(zip(_arguments_of(module), arguments[1:], strict=True))
        run_kernel(module, arguments, (3,), observers=[checker])
        assert checker.checked
        for value in (result for op in module.walk() for result in op.results):
            strides.update(along.step.as_int() for along in facts.of(value).dims)
    assert strides > {0, 1}, strides


def test_the_bits_of_multiples_leave_runs() -> None:
    writer = Writer(Random(0))
    writer.shape = (32,)
    index, runs = writer.index(), dict[tuple[str, int], int]()
    names = (("xori", 8), ("xori", 3), ("ori", 16), ("andi", 7))
    for name, bits in names:
        bits_tile = writer.spread(writer.constant(bits))
        made = writer.emit(ELEMENTWISE[f"arith.{name}"], [index, bits_tile], index.type)
        writer.tiles.append(made)
    writer.block.add_op(build(ReturnOp))
    facts = AxisFacts(ModuleOp([_function(writer.block, 1)]))
    for (name, bits), tile in zip(names, writer.tiles, strict=True):
        runs[name, bits] = facts.of(tile).contiguity[0]
    assert runs == {("xori", 8): 8, ("xori", 3): 1, ("ori", 16): 16, ("andi", 7): 8}
