"""How many warps a tile has: those of its role, or those of the program."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr

from tilewright.ir.locations import span_of
from tilewright.ir.types import i32
from tilewright.ops.function import FuncOp
from tilewright.ops.roles import Role, find_roles
from tilewright.support.errors import PlanRefused

_WARPS = "tt.num_warps"


def set_warps(kernel: FuncOp, num_warps: int) -> None:
    """Run each program of a kernel with so many warps, whatever the launch asks for."""
    kernel.attributes[_WARPS] = IntegerAttr(num_warps, i32)


def warps_of_program(kernel: FuncOp, num_warps: int) -> int:
    """The warps of a program without roles, where the launch asks for `num_warps`."""
    decided = kernel.attributes.get(_WARPS)
    return decided.value.data if isinstance(decided, IntegerAttr) else num_warps


def roles_of(kernel: FuncOp) -> tuple[Role, ...]:
    """The roles of a kernel, () where it is one program."""
    op = find_roles(kernel)
    return () if op is None else op.described()


def warps_of_tiles(kernel: FuncOp, num_warps: int) -> int:
    """The warps among which the tiles of a kernel lie, with `num_warps` asked for.

    All roles have as many: a layout says nothing of the role that it is for.

    *Raises*: PlanRefused for roles that differ.
    """
    roles = roles_of(kernel)
    if not roles:
        return warps_of_program(kernel, num_warps)
    first = roles[0]
    other = next((role for role in roles if role.warps != first.warps), None)
    if other is not None:
        span, chain = span_of(kernel)
        raise PlanRefused(
            f"the roles of `{kernel.sym_name.data}` are refused: `{first.name}` has "
            f"{first.warps} warps, `{other.name}` has {other.warps}, and all have as many",
            hint=f"write `warps {max(first.warps, other.warps)}` behind both, or behind none",
            span=span,
            chain=chain,
        )
    return first.warps
