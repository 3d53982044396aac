"""Matrix instructions as data: which tile one computes, and who issues it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class MatrixAtom:
    """A matrix instruction: `warps` together compute `rows` x N results with K of `depth_bytes`.

    *Constraints*: N is a multiple of `column_step` up to `max_columns`.
    """

    name: str
    warps: int
    rows: int
    column_step: int
    max_columns: int
    depth_bytes: int = 32


MMA = MatrixAtom("mma", warps=1, rows=16, column_step=8, max_columns=8)
"""A warp with all operands in registers. Source: PTX ISA 8.8, 9.7.14.5 (m16n8)."""

WGMMA = MatrixAtom("wgmma", warps=4, rows=64, column_step=8, max_columns=256)
"""A warp group, B in shared memory. Source: PTX ISA 8.8, 9.7.15 (m64nNkK)."""

TCGEN05 = MatrixAtom("tcgen05", warps=1, rows=128, column_step=16, max_columns=256)
"""One thread, results in tensor memory. Source: PTX ISA 8.8, 9.7.16 (cta_group::1, M = 128)."""

MATRIX_ATOMS: Mapping[str, MatrixAtom] = MappingProxyType(
    {atom.name: atom for atom in (MMA, WGMMA, TCGEN05)}
)


def matrix_atom(name: str) -> MatrixAtom:
    """The matrix instruction of that name."""
    return MATRIX_ATOMS[name]
