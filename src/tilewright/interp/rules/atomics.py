"""Atomics: one step at each address, and the order between programs that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from xdsl.ir import Attribute, Operation

from tilewright.interp.access import Lanes, lanes_of, read, require_defined, write
from tilewright.interp.casts import round_float
from tilewright.interp.code import ControlFunction, Pause, Preparation, Running
from tilewright.interp.program import Program
from tilewright.interp.rules.memory import OptionalOperand, pointee_of
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.interp.values import memory_dtype_of
from tilewright.ir.narrow_floats import NARROW_FLOATS, widened
from tilewright.ir.op import Array
from tilewright.ops.atomics.ir import (
    AtomicCasOp,
    AtomicLoadOp,
    AtomicOp,
    AtomicRmwOp,
    AtomicStoreOp,
)
from tilewright.ops.elementwise.reference import unsigned

Combine = Callable[[Array, Array], Array]


def _on_unsigned(function: Combine) -> Combine:
    return lambda old, new: function(unsigned(old), unsigned(new)).view(old.dtype)


COMBINE: dict[str, Combine] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "add": np.add,
    "fadd": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "umax": _on_unsigned(np.maximum),
    "umin": _on_unsigned(np.minimum),
    "exch": lambda old, new: new,
}


def combine_rounded(kind: str, old: Array, new: Array) -> Array:
    """One read-modify-write on arrays; narrow floats are rounded once."""
    if old.dtype not in NARROW_FLOATS or kind == "exch":
        return COMBINE[kind](old, new)
    return round_float(COMBINE[kind](widened(old), widened(new)), old.dtype)


def distinct_rounds(addresses: Array) -> Iterator[Array]:
    """Groups of lanes with distinct addresses; equal addresses follow in lane order."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    if starts.size == addresses.size:
        yield np.arange(addresses.size)
        return
    rank = np.arange(addresses.size) - np.repeat(starts, np.diff(np.r_[starts, addresses.size]))
    for turn in range(int(rank.max()) + 1):
        yield np.sort(order[rank == turn])


def modify(program: Program, lanes: Lanes, values: Array, order: str, kind: str) -> Array:
    """Combine `values` into memory at the lanes and return what was there before."""
    old = np.empty(lanes.addresses.shape, values.dtype)
    if not lanes.addresses.size:
        return old
    _acquire(program, lanes, order)
    for chosen in distinct_rounds(lanes.addresses):
        part = lanes.select(chosen)
        before = read(program, part, values.dtype, kind="")
        write(program, part, combine_rounded(kind, before, values[chosen]), "atomic_write")
        old[chosen] = before
    _release(program, lanes, order, joins=True)
    return old


def _acquire(program: Program, lanes: Lanes, order: str) -> None:
    races = program.machine.races
    if races is not None and order in ("acquire", "acq_rel"):
        races.acquire(program.index, lanes.addresses)


def _release(program: Program, lanes: Lanes, order: str, *, joins: bool) -> None:
    races = program.machine.races
    if races is None:
        return
    if order in ("release", "acq_rel"):
        races.release(program.index, np.unique(lanes.addresses), joins=joins)
    elif not joins:
        races.forget_release(lanes.addresses)


class _Access:
    """What atomics have in common: where they point and which lanes take part."""

    def __init__(
        self, operation: AtomicRmwOp | AtomicCasOp | AtomicLoadOp | AtomicStoreOp,
        preparation: Preparation,
    ) -> None:  # fmt: skip
        mask = None if isinstance(operation, AtomicCasOp) else operation.mask
        self._operation = operation
        self._pointer = OptionalOperand(preparation, operation.ptr)
        self._mask = OptionalOperand(preparation, mask)
        self._results = preparation.slots(operation.results)
        self.element: Attribute = pointee_of(operation.ptr.type)
        self.dtype = memory_dtype_of(self.element)
        self.order = operation.order_name()

    def lanes(self, program: Program) -> Lanes:
        """The active lanes."""
        program.operation = self._operation
        mask = self._mask.value(program)
        require_defined(program, "the mask of an atomic", self._mask.poison(program))
        require_defined(program, "the address of an atomic", self._pointer.poison(program), mask)
        addresses = self._pointer.value(program)
        assert addresses is not None
        return lanes_of(addresses, mask)

    def operand(self, program: Program, lanes: Lanes, operand: OptionalOperand) -> Array:
        """The elements of an operand at the active lanes."""
        what = "the value of an atomic"
        require_defined(program, what, operand.poison(program), self._mask.value(program))
        flat = np.broadcast_to(np.asarray(operand.value(program)), lanes.shape).ravel()
        chosen = flat if lanes.positions is None else flat[lanes.positions]
        return np.atleast_1d(chosen).astype(self.dtype, copy=False)

    def finish(self, program: Program, lanes: Lanes, old: Array) -> None:
        """Put the old values in the result; lanes that took no part are undefined."""
        (slot,) = self._results
        if lanes.positions is None:
            program.values[slot] = old.reshape(lanes.shape)
            program.poison[slot] = None
            return
        result = np.zeros(lanes.shape, self.dtype)
        result.reshape(-1)[lanes.positions] = old
        mask = np.ones(lanes.shape, np.bool_)
        mask.reshape(-1)[lanes.positions] = False
        program.values[slot] = result
        program.poison[slot] = mask
        program.has_poison = True


@TILE_RULES.control.register(AtomicRmwOp)
def read_modify_write(operation: Operation, preparation: Preparation) -> ControlFunction:
    """tt.atomic_rmw."""
    assert isinstance(operation, AtomicRmwOp)
    access = _Access(operation, preparation)
    value = OptionalOperand(preparation, operation.value)
    kind = operation.kind_name()

    def run(program: Program) -> Running:
        yield Pause.ATOMIC
        lanes = access.lanes(program)
        values = access.operand(program, lanes, value)
        access.finish(program, lanes, modify(program, lanes, values, access.order, kind))

    return run


@TILE_RULES.control.register(AtomicCasOp)
def compare_and_swap(operation: Operation, preparation: Preparation) -> ControlFunction:
    """tt.atomic_cas; values are compared by their bits."""
    assert isinstance(operation, AtomicCasOp)
    access = _Access(operation, preparation)
    compare = OptionalOperand(preparation, operation.compare)
    value = OptionalOperand(preparation, operation.value)

    def run(program: Program) -> Running:
        yield Pause.ATOMIC
        lanes = access.lanes(program)
        expected = access.operand(program, lanes, compare)
        new = access.operand(program, lanes, value)
        access.finish(program, lanes, _swap_where_equal(program, lanes, expected, new, access))

    return run


def _swap_where_equal(
    program: Program, lanes: Lanes, expected: Array, new: Array, access: _Access
) -> Array:
    old = np.empty(lanes.addresses.shape, access.dtype)
    _acquire(program, lanes, access.order)
    for chosen in distinct_rounds(lanes.addresses):
        part = lanes.select(chosen)
        before = read(program, part, access.dtype, "atomic_read")
        old[chosen] = before
        equal = np.flatnonzero(_bits(before) == _bits(expected[chosen]))
        if equal.size:
            swapped = part.select(equal)
            write(program, swapped, new[chosen][equal], "atomic_write")
            _release(program, swapped, access.order, joins=True)
    return old


def _bits(array: Array) -> Array:
    return array.view(f"u{array.dtype.itemsize}")


@TILE_RULES.control.register(AtomicLoadOp)
def atomic_load(operation: Operation, preparation: Preparation) -> ControlFunction:
    """tw.atomic_load."""
    assert isinstance(operation, AtomicLoadOp)
    access = _Access(operation, preparation)

    def run(program: Program) -> Running:
        yield Pause.ATOMIC
        lanes = access.lanes(program)
        _acquire(program, lanes, access.order)
        access.finish(program, lanes, read(program, lanes, access.dtype, "atomic_read"))

    return run


@TILE_RULES.control.register(AtomicStoreOp)
def atomic_store(operation: Operation, preparation: Preparation) -> ControlFunction:
    """tw.atomic_store."""
    assert isinstance(operation, AtomicStoreOp)
    access = _Access(operation, preparation)
    value = OptionalOperand(preparation, operation.value)

    def run(program: Program) -> Running:
        yield Pause.ATOMIC
        lanes = access.lanes(program)
        write(program, lanes, access.operand(program, lanes, value), "atomic_write")
        _release(program, lanes, access.order, joins=False)

    return run


__all__ = ["COMBINE", "AtomicOp", "combine_rounded", "distinct_rounds", "modify"]
