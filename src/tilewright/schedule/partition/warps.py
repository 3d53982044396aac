"""How many warps a tile has: those of its role, or those of the program."""

from __future__ import annotations

from tilewright.ops.function import FuncOp
from tilewright.ops.roles import Role, find_roles
from tilewright.support.errors import InternalError


def roles_of(kernel: FuncOp) -> tuple[Role, ...]:
    """The roles of a kernel, () where it is one program."""
    op = find_roles(kernel)
    return () if op is None else op.described()


def warps_of_tiles(kernel: FuncOp, num_warps: int) -> int:
    """The warps among which the tiles of a kernel lie, of `num_warps` where it has no roles.

    All roles have as many: a layout says nothing of the role that it is for.
    """
    warps = {role.warps for role in roles_of(kernel)}
    if len(warps) > 1:
        raise InternalError(f"roles of {sorted(warps)} warps in one kernel")
    return warps.pop() if warps else num_warps
