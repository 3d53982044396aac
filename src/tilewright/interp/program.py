"""A program that is being interpreted: where it stands and what its values are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TextIO

from xdsl.ir import Operation

from tilewright.interp.breakpoints import Stop
from tilewright.interp.concurrency import RaceDetector
from tilewright.interp.memory import Allocation, Memory
from tilewright.ir.effects import Resource, require_declared
from tilewright.ir.locations import span_of
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import KernelFault

if TYPE_CHECKING:  # only laid-out programs have any
    from tilewright.interp.shared_memory import SharedMemory

BreakpointHook = Callable[[Stop], None]


class Observer(Protocol):
    """Someone who watches every op that a program has evaluated."""

    def after_op(
        self, operation: Operation, program: tuple[int, int, int], results: tuple[object, ...]
    ) -> None:
        """Called after each op without regions, with its results."""
        ...


Touched = tuple[Operation, Resource, bool]
"""An op that has touched a resource, and whether it wrote."""


@dataclass
class Machine:
    """What all programs of one launch share; `touched` is what each op did to memory.

    `grid` is the programs that run, `asked_grid` those of the launch: more of a persistent kernel.
    """

    memory: Memory
    grid: tuple[int, int, int]
    asked_grid: tuple[int, int, int]
    races: RaceDetector | None
    breakpoint_hook: BreakpointHook
    output: TextIO = field(default_factory=lambda: sys.stdout)
    observers: tuple[Observer, ...] = ()
    touched: set[Touched] = field(default_factory=lambda: set())
    spin_limit: int = 10_000
    clock_ns: int = 0


class Program:
    """One program of the grid: its coordinates, values, and which of them are undefined.

    `values` and `poison` are indexed by slot, a number for each SSA value. `poison[slot]` is
    None where the value is defined everywhere, else a mask of undefined elements. A rule that
    makes undefined elements leaves their mask in `fresh_poison`. `shared` is there once a program
    of a GPU's levels has touched shared memory.
    """

    def __init__(self, machine: Machine, index: int, coordinates: tuple[int, int, int], slots: int):
        self.machine = machine
        self.index = index
        self.coordinates = coordinates
        self.values: list[object] = [None] * slots
        self.poison: list[Array | None] = [None] * slots
        self.has_poison = False
        self.fresh_poison: Array | None = None
        self.operation: Operation | None = None
        self.last_read: Operation | None = None
        self.buffers: dict[Operation, Allocation] = {}
        self.shared: SharedMemory | None = None
        self.divided_by_zero: Operation | None = None
        # Its role and replica, where it is one of several that run at once, and what it waits for.
        self.role = ""
        self.replica = 0
        self.num_replicas = 1
        self.shared_start = 0
        self.awaits = ""
        # How often it has been at a ring, by the ring's name and the class of the op (T1).
        self.ring_places: dict[tuple[str, type[Operation]], int] = {}

    def move(self, sources: tuple[int, ...], targets: tuple[int, ...]) -> None:
        """Copy values between slots, all at once."""
        values = [self.values[slot] for slot in sources]
        masks = [self.poison[slot] for slot in sources] if self.has_poison else None
        for slot, value in zip(targets, values, strict=True):
            self.values[slot] = value
        if masks is not None:
            for slot, mask in zip(targets, masks, strict=True):
                self.poison[slot] = mask

    def touch(self, resource: Resource, *, writes: bool) -> None:
        """Hold the op that the program is at to what it declares: see `ir.effects`.

        *Raises* InternalError where it reads or writes what it does not say.
        """
        assert self.operation is not None
        touched = (self.operation, resource, writes)
        if touched not in self.machine.touched:
            require_declared(*touched)
            self.machine.touched.add(touched)

    def as_role(self, name: str, replica: int, num_replicas: int, shared_start: int) -> Program:
        """A replica of a role of this program: it has values of its own, all else in common.

        What it allocates in shared memory lies from byte `shared_start` on.
        """
        role = copy(self)
        role.values, role.poison = list(self.values), list(self.poison)
        role.ring_places, role.shared_start = {}, shared_start
        role.role, role.replica, role.num_replicas = name, replica, num_replicas
        return role

    def note_division(self, operation: Operation) -> None:
        """Remember a division by zero, should its result be used."""
        self.divided_by_zero = operation

    def make_poison(self, mask: Array) -> None:
        """Say that the result of the op being evaluated is undefined where `mask`."""
        self.fresh_poison = mask
        self.has_poison = True

    def fault(
        self, cls: type[KernelFault], summary: str, *, argument: str | None = None, hint: str = ""
    ) -> KernelFault:
        """The error `cls` at the op that the program is at."""
        assert self.operation is not None
        span, chain = span_of(self.operation)
        return cls(
            f"{summary}, in program {self.coordinates}",
            argument=argument,
            hint=hint,
            span=span,
            chain=chain,
        )

    def free_buffers(self) -> None:
        """Give back the program's private buffers when it has ended."""
        for allocation in self.buffers.values():
            self.machine.memory.release(allocation)
        self.buffers.clear()
