"""Masks of accesses: which machine takes them, an access' operands, and what says nothing."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, SSAValue

from tilewright.ir.types import i32, width_bits
from tilewright.machine.model import MachineModel
from tilewright.ops.creation.ir import constant_of

MASKED_ACCESSES = ("avx512f", "avx512bw", "avx512vl")
"""The features of a machine whose vector accesses take a mask for elements of any size."""


def has_masks(machine: MachineModel) -> bool:
    """Whether a machine's vector accesses take a mask for elements of any size."""
    return all(name in machine.enabled_features for name in MASKED_ACCESSES)


def has_masked_loads(machine: MachineModel, element: Attribute) -> bool:
    """Whether a machine's vector loads of an element type take a mask.

    AVX2's do of 32 and 64 bits. Its masked stores cost an AMD core as much as single elements.
    """
    return has_masks(machine) or (machine.has_feature("avx2") and width_bits(element) in (32, 64))


def segments(*sizes: int) -> dict[str, Attribute]:
    """The property that says how many operands each group of an op's operands has."""
    return {"operandSegmentSizes": DenseArrayBase.from_list(i32, list(sizes))}


NO_MASK = segments(1, 0, 0)


def is_all_true(mask: SSAValue | None) -> bool:
    """Whether a mask is absent or the constant true."""
    return mask is None or bool(constant_of(mask))
