"""What ops do besides computing their results: the memory-effect facet.

Every op declares it beside its definition, in one of three ways: the trait `Pure` (nothing), the
trait `RecursiveMemoryEffect` (what the ops in its regions do), or a method `effects`, which lists
in order what one instance does. Who orders, moves, merges or removes ops asks here and nowhere
else; an op that declares nothing is an error, not a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import cast

from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure, RecursiveMemoryEffect

from tilewright.ir.locations import span_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import EffectsNotDeclared, InternalError


class Resource(Enum):
    """What an effect is on."""

    GLOBAL = "what pointers reach: the arguments' memory, a CPU program's own buffers"
    SHARED = "the shared memory of one program, by tiles"
    TENSOR = "the memory of matrix units that is apart from registers (sm_100)"
    WORKSPACE = "memory that belongs to the launch and that no argument names"
    QUEUE = "the asynchronous accesses that a thread has started, whose order it counts on"
    CONSOLE = "what a person sees"
    CONTROL = "whether the program goes on from here, and what it may rely on if it does"
    CLOCK = "time"
    ANY = "all of these"


class Extent(Enum):
    """Which part of an access an op is: all of it, or where it starts or ends."""

    WHOLE = "whole"
    START = "start"
    END = "end"


class Order(Enum):
    """What orders the accesses of a program."""

    BARRIER = "all threads of the program wait for each other"
    FENCE = "a thread's writes to shared memory are seen by asynchronous units after it"


@dataclass(frozen=True)
class Atomic:
    """How an access synchronizes with other programs: its memory order and scope, by name."""

    order: str
    scope: str

    @property
    def releases(self) -> bool:
        """Whether all that the program did before is done, for who acquires."""
        return self.order in ("release", "acq_rel")

    @property
    def acquires(self) -> bool:
        """Whether the program does nothing later before it."""
        return self.order in ("acquire", "acq_rel")


@dataclass(frozen=True)
class Access:
    """A read or write, or both, of a resource.

    `value` names the memory: pointers, a descriptor, a shared tile; without it, it may be any.
    `is_async` is one by an asynchronous unit (wgmma, TMA), which sees what threads wrote only
    after a fence. One that only starts here goes on until an op waits for it.
    """

    resource: Resource
    reads: bool
    writes: bool
    value: SSAValue | None = None
    is_async: bool = False
    extent: Extent = Extent.WHOLE
    atomic: Atomic | None = None

    def is_on(self, resource: Resource) -> bool:
        """Whether this may be an access of a resource."""
        return self.resource is resource or self.resource is Resource.ANY


@dataclass(frozen=True)
class Allocation:
    """`value` is memory of its own from here on; what it holds is not defined."""

    resource: Resource
    value: SSAValue


@dataclass(frozen=True)
class Wait:
    """The end of the accesses that the ops behind `values` started; `resource` is their target.

    `through` are the classes of these ops, and of those that hand their tokens on. `is_joint`:
    every thread waits, so what any of them does next is ordered. With `pending` a thread counts
    what it has started: all groups of the first class but the newest so many have ended.
    """

    resource: Resource
    values: tuple[SSAValue, ...]
    through: tuple[type[Operation], ...]
    is_joint: bool = False
    pending: int | None = None


@dataclass(frozen=True)
class Group:
    """The accesses that ops of the class `of` have started since the last group are one."""

    resource: Resource
    of: type[Operation]


Effect = Access | Allocation | Wait | Group | Order


def read(
    resource: Resource,
    value: SSAValue | None = None,
    *,
    is_async: bool = False,
    extent: Extent = Extent.WHOLE,
) -> Access:
    """A read of a resource."""
    return Access(resource, True, False, value, is_async, extent)


def write(
    resource: Resource,
    value: SSAValue | None = None,
    *,
    is_async: bool = False,
    extent: Extent = Extent.WHOLE,
) -> Access:
    """A write of a resource."""
    return Access(resource, False, True, value, is_async, extent)


def update(resource: Resource, value: SSAValue | None = None) -> Access:
    """A read and a write of a resource."""
    return Access(resource, True, True, value)


_Declared = Callable[[Operation], tuple[Effect, ...]]


def _none(_: Operation) -> tuple[Effect, ...]:
    return ()


def _recursive(_: Operation) -> tuple[Effect, ...]:
    return ()


# Of ops that are not ours, by name.
_UPSTREAM: dict[str, _Declared] = {"builtin.module": _recursive}
_DECLARED: dict[type[Operation], _Declared | None] = {}


def _declaration(cls: type[Operation]) -> _Declared | None:
    """How the ops of a class say what they do; None where they do not."""
    if cls in _DECLARED:
        return _DECLARED[cls]
    found: _Declared | None = _UPSTREAM.get(cls.name)
    if cls.has_trait(RecursiveMemoryEffect):
        found = _recursive
    elif cls.has_trait(Pure):
        found = _none
    elif callable(method := getattr(cls, "effects", None)):
        found = cast("_Declared", method)
    _DECLARED[cls] = found
    return found


def declares_effects(cls: type[Operation]) -> bool:
    """Whether the ops of a class say what they do besides computing their results."""
    return _declaration(cls) is not None


def own_effects(op: Operation) -> tuple[Effect, ...]:
    """What an op does itself, in order: nothing for loops and branches.

    *Raises* EffectsNotDeclared for an op whose class does not say.
    """
    declared = _declaration(type(op))
    if declared is None:
        span, chain = span_of(op)
        raise EffectsNotDeclared(
            f"the op {op.name} does not say what it does to memory", span=span, chain=chain
        )
    return declared(op)


def global_access(op: Operation) -> Access | None:
    """How an op itself reads or writes what its pointers, or its descriptor, point to."""
    for effect in own_effects(op):
        if not isinstance(effect, Access) or effect.value is None:
            continue
        if effect.resource is Resource.GLOBAL:
            return effect
    return None


def writes_global(op: Operation) -> bool:
    """Whether an op itself writes global memory."""
    access = global_access(op)
    return access is not None and access.writes


def is_plain_read(op: Operation) -> bool:
    """Whether an op itself reads global memory, neither writing nor as an atomic."""
    access = global_access(op)
    return access is not None and not access.writes and access.atomic is None


def atomic_of(op: Operation) -> Atomic | None:
    """How an op synchronizes with other programs; None where it does not."""
    access = global_access(op)
    return None if access is None else access.atomic


def is_structural(op: Operation) -> bool:
    """Whether an op does what the ops in its regions do: a loop, a branch, a function."""
    return bool(op.regions) and _declaration(type(op)) is _recursive


def effects_of(op: Operation) -> Iterator[Effect]:
    """What an op and the ops that it runs do, each op's in order."""
    pending = [op]
    while pending:
        current = pending.pop()
        yield from own_effects(current)
        if is_structural(current):
            pending += [
                inner
                for region in current.regions
                for block in region.blocks
                for inner in block.ops
            ]


def is_free(op: Operation) -> bool:
    """Whether an op does nothing but compute its results, nor does what it runs."""
    return not any(True for _ in effects_of(op))


def require_declared(op: Operation, resource: Resource, writes: bool) -> None:
    """Hold an op to what it declares: it has read or written a resource.

    *Raises* InternalError where it does not say so.
    """
    accesses = [e for e in own_effects(op) if isinstance(e, Access) and e.is_on(resource)]
    if not any(access.writes if writes else access.reads for access in accesses):
        verb = "writes to" if writes else "reads"
        span, chain = span_of(op)
        raise InternalError(
            f"{op.name} {verb} {resource.name.lower()} memory and does not declare it",
            span=span,
            chain=chain,
        )


def touches_only_shared(op: Operation) -> bool:
    """Whether an op, with what it runs, does nothing but its threads' accesses of shared tiles."""
    for effect in effects_of(op):
        is_shared = not isinstance(effect, Order | Wait) and effect.resource is Resource.SHARED
        if not is_shared or (isinstance(effect, Access) and effect.is_async):
            return False
    return True


# What a read of global memory may change places with, though it is written: only one program's
# own accesses of what no pointer reaches, and what is counted by thread.
_BESIDE_GLOBAL = frozenset({Resource.SHARED, Resource.TENSOR, Resource.QUEUE})
# What does not change what a read finds; a read before it may still fault earlier than it.
_ASIDE = _BESIDE_GLOBAL | {Resource.CONSOLE, Resource.CONTROL}


def stops_reads(op: Operation) -> bool:
    """Whether a read of global memory that stands behind an op must not be done before it.

    Writes and what orders them stop it; so do printing and asserting, which come before a fault.
    """
    return _any_blocks(effects_of(op), _BESIDE_GLOBAL)


def stopping_ops(body: Operation) -> Iterator[Operation]:
    """The ops in the regions of `body` that stop reads themselves; see `stops_reads`.

    Those of inner loops and branches are named one by one, and not the loop or the branch.
    """
    inner = (op for op in body.walk() if op is not body and not is_structural(op))
    return filter(stops_reads, inner)


def overtakes_reads(op: Operation) -> bool:
    """Whether a read of global memory that stands before an op must not be done after it."""
    return _any_blocks(effects_of(op), _ASIDE)


def _any_blocks(effects: Iterable[Effect], allowed: frozenset[Resource]) -> bool:
    for effect in effects:
        if isinstance(effect, Order):
            return True
        if effect.resource in allowed:
            continue
        # What another program published is found by atomics: nothing passes even their reads.
        is_access = isinstance(effect, Access)
        if isinstance(effect, Wait) or (is_access and (effect.writes or effect.atomic is not None)):
            return True
    return False
