"""Computes behind the products of a role's tile what only its stores need (T1 to T1).

    %i = divsi %tile, %width; for … { dot … }; store %d[%i, …]
    ⇒ for … { dot … }; %i = divsi %tile, %width; store %d[%i, …]

While a role computes in front of its loop no product runs; behind it such an op shares its time
with the conversion of the tile, and no register holds its result meanwhile. Only ops without
effects move, behind the last loop of products in front of their first user, and none that would
hold larger tiles through that loop than it makes.

*Source*: two divisions of 32 bits are about 300 cycles, of 16,400 that a tile of 128 x 256 and a
depth of 1024 takes (ptxas 13.0, H200).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.effects import is_free
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ancestor_in, blocks_of, counter_of
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.ops.function import find_kernel
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.roles import find_roles
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class ComputeLate(Pass):
    """The pass; see the module."""

    name = "compute-late"
    requires = "T1"
    produces = "T1"
    after = ("stage-channels", "overlap-products", "wait-late")

    def apply(self, module: ModuleOp) -> None:
        """Reorder the bodies of the kernel's roles."""
        roles = find_roles(find_kernel(module))
        if roles is None:
            return
        for block in dict.fromkeys(block for op in roles.walk() for block in blocks_of(op)):
            loops = [op for op in block.ops if _multiplies(op)]
            if loops:
                _sink(block, loops)


def _multiplies(op: Operation) -> bool:
    return counter_of(op) is not None and any(isinstance(inner, ProductOp) for inner in op.walk())


def _sink(block: Block, loops: list[Operation]) -> None:
    """Move what may be computed later, users first, so that what they take follows them."""
    late = _late(block, loops, frozenset())
    kept: frozenset[Operation] = frozenset()
    while held := {op for op in late if _holds_more(op, late)}:
        kept |= held
        late = _late(block, loops, kept)
    for op, loop in late.items():
        op.detach()
        block.insert_op_after(op, loop)


def _late(
    block: Block, loops: list[Operation], kept: frozenset[Operation]
) -> dict[Operation, Operation]:
    """The ops that only what stands behind a loop takes, from the last on, and that loop."""
    late: dict[Operation, Operation] = {}
    places: dict[Operation, float] = {op: place for place, op in enumerate(block.ops)}
    loop_places = [(places[loop], loop) for loop in loops]
    for op in reversed(list(block.ops)):
        if op in kept or op.regions or op.has_trait(IsTerminator) or not is_free(op):
            continue
        first = min((places[ancestor_in(block, user)] for user in _users(op)), default=0)
        crossed = [loop for place, loop in loop_places if places[op] < place < first]
        if crossed:
            late[op] = crossed[-1]
            places[op] = places[crossed[-1]] + 0.5  # between the loop and what follows it
    return late


def _users(op: Operation) -> Iterator[Operation]:
    for result in op.results:
        for use in result.uses:
            yield use.operation


def _holds_more(op: Operation, late: Mapping[Operation, Operation]) -> bool:
    """Whether registers hold more through the loops where an op is computed behind them."""
    taken = [value for value in op.operands if value.owner not in late]
    return sum(map(_num_bytes, taken)) > sum(map(_num_bytes, op.results))


def _num_bytes(value: SSAValue) -> int:
    """The bytes of a tile in registers; 0 of a scalar and of what lies in shared memory."""
    if not isinstance(value.type, TensorType):
        return 0
    return prod(shape_of(value.type)) * storage_bytes(value.type)
