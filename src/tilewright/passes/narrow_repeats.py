"""Loads what a tile repeats once, and repeats it in registers (T0 to T0).

    %y = load %p : 128x64                             # rows 0 to 7 are one, 8 to 15 are one, …
    ⇒ %n = load %q : 16x64                            # every eighth row of %p
      %y = reshape (broadcast (expand_dims %n, 1) to 16x8x64)

Why: weights of 4 bits are eight to a word, and a group of weights shares its scale: their tiles
name each address as often. As they are, every name is a load, and a place in shared memory where
the loads of a loop run ahead.

Only loads of a loop that its products take something computed of are rewritten: there a layout is
sought for the whole computation anyway, and a thread that holds all that one word unpacks to moves
nothing. Pointers and masks must be such that a part of them can be computed alone; a volatile load
is made as often as it is written. Requires and produces T0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.computed_loads import computed_loads
from tilewright.analysis.facts import AxisFacts
from tilewright.analysis.trusted_runs import TrustedRuns
from tilewright.ir.edits import replace_by
from tilewright.ir.effects import is_free
from tilewright.ir.op import ElementwiseOp, ViewOp
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp
from tilewright.ir.types import element_of, shape_of, tile_of
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, constant_of, splatted
from tilewright.ops.function import find_kernel
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, ReshapeOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass
from tilewright.support.deep_calls import with_room


@dataclass(frozen=True)
class NarrowRepeats(Pass):
    """The pass; see the module."""

    name = "narrow-repeats"
    after = ("split-carried-pointers", "merge-duplicates")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the loads of the kernel."""
        kernel = find_kernel(module)
        loads = [load for found in _loops_of_products(kernel) for load in computed_loads(*found)]
        facts = AxisFacts(kernel) if loads else None
        found = [] if facts is None else [(load, *_repeats(load, facts)) for load in loads]
        narrowed, trusted = _Narrowed(), TrustedRuns()
        for load, dim, factor in found:
            if (
                factor > 1
                and _are_trusted(trusted, load, dim)
                and narrowed.are_possible(load.operands, dim, factor)
            ):
                _rewrite(load, dim, factor, narrowed)


def _loops_of_products(kernel: Operation) -> Iterator[tuple[Block, list[Operation]]]:
    """The bodies of loops, with what they multiply."""
    for op in kernel.walk():
        if isinstance(op, ControlFlowOp) and op.is_loop():
            for block in (block for region in op.regions for block in region.blocks):
                yield block, [inner for inner in block.ops if isinstance(inner, ProductOp)]


def _repeats(load: LoadOp, facts: AxisFacts) -> tuple[int, int]:
    """The dim along which a load repeats elements most, and how often."""
    shape = shape_of(load.result.type)
    if not shape:
        return 0, 1
    known = [facts.of(value).constancy for value in load.operands if not _is_uniform(value)]
    times = [gcd(*(runs[dim] for runs in known), shape[dim]) for dim in range(len(shape))]
    dim = max(range(len(shape)), key=times.__getitem__)
    return dim, times[dim]


def _are_trusted(trusted: TrustedRuns, load: LoadOp, dim: int) -> bool:
    """Of the pointers of a load, and of the numbers that its mask compares."""
    pointers, *others = load.operands
    return trusted.of_address(pointers, dim) and all(trusted.of_number(v, dim) for v in others)


def _is_uniform(value: SSAValue) -> bool:
    return constant_of(value) is not None or splatted(value) is not None


Part = tuple[SSAValue, int, int]
"""Of a tile, along a dim, the first of so many elements each."""


class _Narrowed:
    """Parts of tiles, each computed once, where the whole is."""

    def __init__(self) -> None:
        self._known: dict[Part, SSAValue] = {}
        self._possible: dict[Part, bool] = {}

    def are_possible(self, values: Sequence[SSAValue], dim: int, factor: int) -> bool:
        """Whether parts can be computed from the parts of what the wholes are computed from."""
        return all(self._is_possible(value, dim, factor) for value in values)

    def all_of(self, values: Sequence[SSAValue], dim: int, factor: int) -> list[SSAValue]:
        """Parts that are possible."""
        return [self._of(value, dim, factor) for value in values]

    def _is_possible(self, value: SSAValue, dim: int, factor: int) -> bool:
        part = value, dim, factor
        if part not in self._possible:
            self._possible[part] = with_room(lambda: self._follows(*part))
        return self._possible[part]

    def _follows(self, value: SSAValue, dim: int, factor: int) -> bool:
        """Whether a part follows from parts of the operands, or from nothing."""
        op = value.owner
        if isinstance(op, MakeRangeOp) or constant_of(value) is not None:
            return True
        if not isinstance(op, ViewOp | ElementwiseOp) or not is_free(op):
            return False
        parts = _parts_of(op, dim, factor)
        return all(self._is_possible(*part) for part in parts if part[2] > 1)

    def _of(self, value: SSAValue, dim: int, factor: int) -> SSAValue:
        if factor == 1:
            return value
        part = value, dim, factor
        if part not in self._known:
            self._known[part] = with_room(lambda: self._computed(*part))
        return self._known[part]

    def _computed(self, value: SSAValue, dim: int, factor: int) -> SSAValue:
        op = value.owner
        assert isinstance(op, Operation) and op.next_op is not None
        shape = list(shape_of(value.type))
        shape[dim] //= factor
        type_ = tile_of(element_of(value.type), tuple(shape))
        number = constant_of(value)
        if number is not None and isinstance(op, ConstantOp):
            return TileBuilder(op.next_op).constant(type_, number)
        if isinstance(op, MakeRangeOp):
            return self._range(op, shape[0], factor)
        operands = [self._of(*part) for part in _parts_of(op, dim, factor)]
        new = type(op).create(
            operands=operands,
            result_types=[type_],
            properties=op.properties,
            location=op.location,
        )
        assert op.parent is not None
        op.parent.insert_op_after(new, op)
        return new.results[0]

    def _range(self, op: MakeRangeOp, count: int, factor: int) -> SSAValue:
        assert op.next_op is not None
        out, shape = TileBuilder(op.next_op), (count,)
        bounds = {"start": IntegerAttr(0, i32), "end": IntegerAttr(count, i32)}
        numbers = out.emit(MakeRangeOp, (), tile_of(i32, shape), dict(bounds))
        scaled = out.binary("muli", numbers, out.splat(out.integer(factor), shape))
        start = op.start.value.data
        return out.binary("addi", scaled, out.splat(out.integer(start), shape)) if start else scaled


def _parts_of(op: Operation, dim: int, factor: int) -> list[Part]:
    """The parts of the operands that a part of the result takes; all of one by a factor of 1."""
    if not isinstance(op, ViewOp):
        return [(operand, dim, factor if shape_of(operand.type) else 1) for operand in op.operands]
    (source,) = op.operands
    extents, dims = shape_of(source.type), op.source_dims()
    along = [d for d, to in enumerate(dims) if to == dim and extents[d] > 1]
    return [(source, along[0], factor) if along else (source, dim, 1)]


def _rewrite(load: LoadOp, dim: int, factor: int, narrowed: _Narrowed) -> None:
    """Load a part, and repeat it along the dim."""
    operands = narrowed.all_of(load.operands, dim, factor)
    wide = shape_of(load.result.type)
    shape = (*wide[:dim], wide[dim] // factor, *wide[dim + 1 :])
    element = element_of(load.result.type)
    once = LoadOp.create(
        operands=operands,
        result_types=[tile_of(element, shape)],
        properties=load.properties,
        attributes=load.attributes,
        location=load.location,
    )
    assert load.parent is not None
    load.parent.insert_op_before(once, load)
    out, repeated = TileBuilder(load), once.results[0]
    if shape[dim] > 1:
        axis: dict[str, IntegerAttr] = {"axis": IntegerAttr(dim + 1, i32)}
        between = (*shape[: dim + 1], 1, *shape[dim + 1 :])
        repeated = out.emit(ExpandDimsOp, (repeated,), tile_of(element, between), dict(axis))
        between = (*shape[: dim + 1], factor, *shape[dim + 1 :])
        repeated = out.emit(BroadcastOp, (repeated,), tile_of(element, between))
        repeated = out.emit(ReshapeOp, (repeated,), load.result.type)
    else:
        repeated = out.emit(BroadcastOp, (repeated,), load.result.type)
    replace_by(load, repeated)
