"""What of a kernel the copy engine may move: the boxes of its accesses, their maps and guards.

An access of plain pointers that is a box of a tensor is a `Copy`, with what a launch has to
keep to; what is none says why (`Stays`). `bulk_access.py` makes the copies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.box import as_box
from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.analysis.affine.tensor_box import BoxDim, TensorBox
from tilewright.analysis.argument_effects import touched_arguments
from tilewright.analysis.facts import AxisFacts
from tilewright.ir.effects import Access, Resource, own_effects
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.types import (
    DescriptorType,
    element_of,
    is_integer,
    shape_of,
    tile_of,
    width_bits,
)
from tilewright.machine.model import MachineModel
from tilewright.ops.debug.ir import is_assumption
from tilewright.ops.elementwise.ir import ExtSIOp, TruncIOp
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import CACHE_MODIFIERS, LoadOp, StoreOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.runtime.launch_numbers import LaunchGuard, LaunchNumber
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma.box_annotations import annotate_box
from tilewright.targets.nvidia.tma.boxes import BoxPlan, plan_boxes
from tilewright.targets.nvidia.tma.launch_conditions import launch_guard, number_of
from tilewright.targets.nvidia.tma.select_tensor_maps import element_number
from tilewright.targets.nvidia.tma_ops import TensorMapOp

_MAX_INDEX = 1 << 30
"""By definition: no index is larger, so that the end of a box is a number of 32 bits, too."""
# Measured on an H200, 2026-11-22: copies of maps with larger extents are illegal instructions,
# though the driver makes them (CUDA driver API 13.0, cuTensorMapEncodeTiled, takes up to 2^32).
_EVERYTHING = 1 << 31
# Source: CUDA driver API 13.0, cuTensorMapEncodeTiled: a stride is less than 2^40 bytes.
_MAX_STRIDE_BYTES = (1 << 40) - 16


class Stays(Exception):
    """Why an access stays plain."""


class Copies:
    """The copies that the engine may make of a kernel's accesses.

    Every answer holds for the kernel as it was given, so they are all found before it changes.
    """

    def __init__(self, kernel: FuncOp, machine: MachineModel) -> None:
        self._kernel, self._machine = kernel, machine
        self._accesses, self._facts = Accesses(), AxisFacts(kernel)
        self._touched = touched_arguments(kernel)
        self._stop = _first_stop(kernel)
        self._maps = {
            (op.recipe.data, op.result.type): op.result
            for op in kernel.body.block.ops
            if isinstance(op, TensorMapOp)
        }

    def of_load(self, load: LoadOp) -> Copy:
        """How the engine makes a load. *Raises*: Stays."""
        self._check_read(load)
        return self._of(load, element_of(load.result.type))

    def of_store(self, store: StoreOp) -> Copy:
        """How the engine makes a store of a tile as it is. *Raises*: Stays."""
        self._check_written(store)
        copy = self._of(store, element_of(store.value.type))
        own = shape_of(store.value.type)
        if copy.box.order != tuple(range(len(own))) or copy.plan.shape[-len(own) :] != own:
            raise Stays("its dimensions are not those of the tensor, in the same order")
        return copy

    def _of(self, op: LoadOp | StoreOp, element: Attribute) -> Copy:
        if self._stop:
            raise Stays(self._stop)
        box = as_box(op, self._accesses, self._facts, self._machine)
        if isinstance(box, str):
            raise Stays(box)
        number = element_number(element)
        if number is None:
            raise Stays(f"the copy engine has no {element}")
        plan = plan_boxes(tuple(dim.extent for dim in box.dims), box.element_bytes)
        if isinstance(plan, str):
            raise Stays(plan)
        _check_scalars(box)
        guards = tuple(dict.fromkeys(_guards_of(box)))
        return Copy(box, plan, _recipe(box, plan, number), guards)

    def _check_read(self, load: LoadOp) -> None:
        """Nothing in the kernel writes what is loaded, so that it does not matter when it is."""
        modifier = 0 if load.cache is None else load.cache.value.data
        if CACHE_MODIFIERS[modifier] == ".cv":
            raise Stays("it is to find what others have just written")
        for op, arguments in self._touched.items():
            writes = any(isinstance(e, Access) and e.writes for e in own_effects(op))
            if writes and arguments & self._touched[load]:
                raise Stays(f"{op.name} at {describe(op)} may write what it reads")

    def _check_written(self, store: StoreOp) -> None:
        """Nothing else in the kernel touches what is stored, so that it does not matter when."""
        for op, arguments in self._touched.items():
            if op is not store and arguments & self._touched[store]:
                raise Stays(f"{op.name} at {describe(op)} may touch what it writes")

    def map_for(self, copy: Copy, element: Attribute) -> SSAValue:
        """The tensor map of a copy, at the start of the kernel; one for copies of one tensor."""
        type_ = DescriptorType(tile_of(element, copy.plan.shape))
        text = json.dumps(copy.recipe.to_metadata(), sort_keys=True)
        if (text, type_) not in self._maps:
            entry = self._kernel.body.block
            properties: dict[str, Attribute] = {
                "recipe": StringAttr(text),
                "index": IntegerAttr(len(self._maps), i32),
            }
            arguments = [entry.args[slot] for slot in copy.recipe.slots()]
            location = self._kernel.location
            made = build(TensorMapOp, arguments, [type_], properties, location=location)
            annotate_box(made, copy.plan)
            assert entry.first_op is not None
            entry.insert_op_before(made, entry.first_op)
            self._maps[text, type_] = made.results[0]
        return self._maps[text, type_]


@dataclass(frozen=True)
class Copy:
    """How the engine makes an access, and what the launch has to keep to."""

    box: TensorBox
    plan: BoxPlan
    recipe: TensorMapRecipe
    guards: tuple[LaunchGuard, ...]

    def has_single_dims(self) -> bool:
        """Whether the tensor has dims that the tile has not: a batch, a head."""
        return len(self.plan.shape) > len(self.box.order)


def _first_stop(kernel: FuncOp) -> str:
    """What in a kernel may order its loads with other programs, or may end one; '' without it."""
    for op in kernel.body.block.walk():
        if is_assumption(op):
            continue
        for effect in own_effects(op):
            if not _is_plain(op, effect):
                return f"{op.name} at {describe(op)} orders accesses"
    return ""


def _is_plain(op: Operation, effect: object) -> bool:
    """Whether an effect lets loads of memory that the kernel does not write be done at any time."""
    if not isinstance(effect, Access) or effect.resource is not Resource.GLOBAL:
        return False
    if getattr(op, "is_volatile", None) is not None and op.properties["isVolatile"] != _NOT:
        return False
    is_used = any(result.first_use is not None for result in op.results)
    return effect.atomic is None or not is_used


_NOT = IntegerAttr.from_bool(False)


def _check_scalars(box: TensorBox) -> None:
    """Starts are sums of signed integers that the program has."""
    for dim in box.dims:
        scalars = dim.start.symbols() + (() if dim.modulus is None else dim.modulus.symbols())
        for scalar in scalars:
            if not is_integer(scalar.type) or width_bits(scalar.type) < 8:
                raise Stays(f"where it starts follows from a {scalar.type}")


def _guards_of(box: TensorBox) -> Iterator[LaunchGuard]:
    """What a launch has to keep to. *Raises*: Stays where it cannot be tested."""
    demands = [(guard, str(guard)) for guard in box.guards]
    demands += [(guard, "") for guard in _limits(box)]
    for guard, text in demands:
        known = guard.number.as_int()
        if known is not None:
            if not _holds(known, guard):
                raise Stays(f"{guard} does not hold")
            continue
        found = launch_guard(guard, text)
        if found is None:
            raise Stays(f"that {guard} is not known at a launch")
        yield found


def _holds(number: int, guard: Guard) -> bool:
    if guard.demand is Demand.MULTIPLE:
        return number % guard.bound == 0
    return number <= guard.bound if guard.demand is Demand.AT_MOST else number >= guard.bound


def _limits(box: TensorBox) -> Iterator[Guard]:
    """Indices, extents and strides that the engine takes, of a tensor that begins in its array."""
    yield Guard(box.offset, Demand.AT_LEAST, 0)
    for place, dim in enumerate(_open_ended(box)):
        yield Guard(dim.start, Demand.AT_MOST, _MAX_INDEX)
        yield Guard(dim.start, Demand.AT_LEAST, -_MAX_INDEX if dim.may_precede else 0)
        for size in dim.sizes:
            yield Guard(size, Demand.AT_MOST, _MAX_INDEX)
        if dim.stride.as_int() != 1:
            yield Guard(dim.stride, Demand.AT_MOST, _MAX_STRIDE_BYTES // box.element_bytes)
        if dim.stride.as_int() == 1 and place and dim.sizes:
            # Rows that overlap are no rows of a tensor.
            overlap = dim.sizes[0].minus(box.dims[place - 1].stride)
            yield Guard(overlap, Demand.AT_MOST, 0)


def _recipe(box: TensorBox, plan: BoxPlan, number: str) -> TensorMapRecipe:
    base = _known(Expression(((1, (box.base,)),)))
    offset = _known(box.offset.scaled(box.element_bytes))
    shape = tuple(_size(dim) for dim in _open_ended(box))
    strides = tuple(_known(dim.stride) for dim in box.dims[:-1])
    if offset != ("constant", 0):
        base = ("add", 64, base, offset)
    return TensorMapRecipe(number, base, shape, strides, plan.box, plan.swizzle_bytes)


def _open_ended(box: TensorBox) -> tuple[BoxDim, ...]:
    """The dimensions of a box, without the end of a row that no mask says.

    A tile that crosses it goes on in the next row, as pointers do: to the engine, rows may be
    longer than they are apart.
    """
    within = {(part.start, part.extent, part.limit) for part in box.within}
    return tuple(
        replace(dim, sizes=()) if (dim.start, dim.extent, *dim.sizes[:1]) in within else dim
        for dim in box.dims
    )


def _size(dim: BoxDim) -> LaunchNumber:
    """How long the tensor is: the least of its ends, or as long as the program reads."""
    if not dim.sizes:
        return ("constant", _EVERYTHING)
    first, *others = map(_known, dim.sizes)
    for other in others:
        first = ("min", 64, first, other)
    return first


def _known(expression: Expression) -> LaunchNumber:
    number = number_of(expression)
    if number is None:
        raise Stays("its tensor follows from what a launch does not compute")
    return number


def index_of(make: TileBuilder, dim: BoxDim) -> SSAValue:
    """Where a box starts along a dimension, in 32 bits: the launch has tested that it fits."""
    start = _emitted(make, dim.start)
    if dim.modulus is None:
        return start
    return make.binary("remsi", start, _emitted(make, dim.modulus))


def _emitted(make: TileBuilder, expression: Expression) -> SSAValue:
    """A sum of products modulo 32 bits."""
    return make.sum_of(expression.terms, lambda scalar: _narrow(make, scalar))


def _narrow(make: TileBuilder, scalar: SSAValue) -> SSAValue:
    if width_bits(scalar.type) > 32:
        return make.emit(TruncIOp, (scalar,), i32)
    if width_bits(scalar.type) < 32:
        return make.emit(ExtSIOp, (scalar,), i32)
    return scalar
