"""Computes behind the products of a role's tile what only its stores need (T1 to T1).

    %i = divsi %tile, %width; for … { dot … }; store %d[%i, …]
    ⇒ for … { dot … }; %i = divsi %tile, %width; store %d[%i, …]

While a role computes in front of its loop no product runs; behind it such an op shares its time
with the conversion of the tile, and no register holds its result meanwhile. Only ops without
effects move, behind the last loop of products in front of their first user.

*Source*: two divisions of 32 bits are about 300 cycles, of 16,400 that a tile of 128 x 256 and a
depth of 1024 takes (ptxas 13.0, H200).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from tilewright.ir.effects import is_free
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ancestor_in, blocks_of, counter_of
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
        for block in {block for op in roles.walk() for block in blocks_of(op)}:
            loops = [op for op in block.ops if _multiplies(op)]
            if loops:
                _sink(block, loops)


def _multiplies(op: Operation) -> bool:
    return counter_of(op) is not None and any(isinstance(inner, ProductOp) for inner in op.walk())


def _sink(block: Block, loops: list[Operation]) -> None:
    """Move what may be computed later, users first, so that what they take follows them."""
    for op in reversed(list(block.ops)):
        if op.regions or op.has_trait(IsTerminator) or not is_free(op):
            continue
        users = {ancestor_in(block, user) for user in _users(op)}
        if not users:
            continue
        crossed = list(_loops_before(op, users, loops))
        if crossed:
            op.detach()
            block.insert_op_after(op, crossed[-1])


def _users(op: Operation) -> Iterator[Operation]:
    for result in op.results:
        for use in result.uses:
            yield use.operation


def _loops_before(
    op: Operation, users: set[Operation], loops: list[Operation]
) -> Iterator[Operation]:
    """The loops of products between an op and its first user."""
    following = op.next_op
    while following is not None and following not in users:
        if following in loops:
            yield following
        following = following.next_op
