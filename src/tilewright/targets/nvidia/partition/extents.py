"""Holds the extents of tiles in registers to what the groups of warps of a kernel compute with.

An author who asks for groups may have tiles of a multiple of 16 rows or columns, such as 80 or
192. Where roles are made the groups share them, and layouts repeat a smaller power of two; ops that
move elements from one place of a tile to another do so by halves, and take powers of two.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from tilewright.ir.locations import span_of
from tilewright.ir.op import ByHalvesOp
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.ops.channels import GetOp
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.roles import find_roles, role_around
from tilewright.schedule.partition.refusal import NoRoom, Refused
from tilewright.support.errors import NotPowerOfTwo, SharedMemoryExceeded, TilewrightError
from tilewright.support.powers_of_two import is_power_of_two

_LEAST_PANEL_BYTES = 32
"""Of rows in shared memory whose places follow from each thread's bits. Source: PTX ISA 8.8, 5.5.6,
"Swizzling modes"."""


def require_extents(
    kernel: FuncOp, remarks: tuple[str, ...], refused: Refused | None = None
) -> None:
    """Refuse tiles that the kernel as it is now cannot compute with.

    `remarks` say why it has no roles, `refused` what stood in their way. *Raises*: NotPowerOfTwo
    with the first op that makes one, SharedMemoryExceeded where roles do not fit there.
    """
    has_roles = find_roles(kernel) is not None
    for op in kernel.walk():
        for value in (*op.results, *(op.operands if isinstance(op, ByHalvesOp) else ())):
            if not isinstance(value.type, TensorType):
                continue
            odd = [extent for extent in shape_of(value.type) if not is_power_of_two(extent)]
            problem = _problem(op, has_roles) if odd else ""
            if problem:
                raise _error(op, odd[0], problem, remarks, refused)


def _problem(op: Operation, has_roles: bool) -> str:
    """What is wrong with a tile that is no power of two, made or taken by an op; '' if nothing."""
    if isinstance(op, GetOp | DescriptorLoadOp) and role_around(op) is not None:
        return _problem_of_rows(op)  # a slot, of which the groups read their parts
    if not has_roles:
        return "the groups of warps do not share it"
    if isinstance(op, ByHalvesOp):
        return f"{op.name.removeprefix('tt.')} moves the elements of powers of two"
    return _problem_of_rows(op) if isinstance(op, LoadOp) else ""


def _problem_of_rows(op: Operation) -> str:
    """What is wrong with the rows of a tile that is loaded; '' if nothing."""
    for result in op.results:
        *_, columns = shape_of(result.type)
        row_bytes = columns * storage_bytes(result.type)
        if not is_power_of_two(columns) and row_bytes % _LEAST_PANEL_BYTES:
            return f"rows of {row_bytes} bytes are no multiple of {_LEAST_PANEL_BYTES}"
    return ""


def _error(
    op: Operation, extent: int, problem: str, remarks: tuple[str, ...], refused: Refused | None
) -> TilewrightError:
    span, chain = span_of(op)
    error = (SharedMemoryExceeded if isinstance(refused, NoRoom) else NotPowerOfTwo)(
        f"a tile of {extent} rows or columns is no power of two, and {problem}",
        hint="; ".join(remarks)
        or "groups share the rows of products and of what is computed with them; take a power of "
        "two, or 32 times a number where elements have 8 bits",
        span=span,
        chain=chain,
    )
    if isinstance(error, SharedMemoryExceeded) and isinstance(refused, NoRoom):
        error.required_bytes, error.limit_bytes = refused.required, refused.limit
    return error
