"""Copies of tensors as machine code: no spills, no serialized products, few instructions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.unit.targets.nvidia import descriptor_kernels as cases
from tests.unit.targets.nvidia.descriptor_launching import MACHINE, lowered
from tilewright.targets.nvidia.assembler import Assembled, assemble_ptx
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas


def assembled(kernel: object, arguments: Sequence[object], **options: object) -> Assembled:
    """The kernel as ptxas assembles it."""
    program = lowered(kernel, arguments, options)
    return assemble_ptx(to_ptx(program.text, MACHINE), "sm_90a")


def test_products_of_descriptors_assemble_without_spills() -> None:
    arguments = cases.operands(256, 256, 256, "float16", (128, 128, 64))
    for kernel, given in (
        (cases.matmul, arguments),
        (cases.matmul_transposed, cases.transposed(arguments)),
    ):
        for groups, most in ((0, 128), (2, 168)):
            result = assembled(kernel, given, num_warps=8, num_consumer_groups=groups)
            assert not result.resources.has_spills and result.remarks() == ()
            assert result.resources.registers <= most


@pytest.mark.parametrize("kind", ["add", "min", "max", "and", "or", "xor"])
def test_every_reduction_assembles(kind: str) -> None:
    x = cases.numbers((24, 16), "int32")
    blocks = [cases.described(x, (8, 16)), cases.described(x, (8, 16)), 8]
    assert not assembled(cases.reducing(kind), blocks).resources.has_spills


def test_five_dimensions_and_nested_phases_assemble() -> None:
    x = cases.described(cases.numbers((2, 3, 4, 3, 16)), (1, 2, 2, 2, 16))
    assert not assembled(cases.add_five, [x, x]).resources.has_spills
    x = cases.described(cases.numbers((24, 24)), (16, 16))
    assert not assembled(cases.nested, [x, x, 3, 5, 16]).resources.has_spills


def test_maps_that_programs_make_assemble() -> None:
    arguments = cases.grouped_arguments([(64, 32, 32), (8, 64, 64)])
    result = assembled(cases.grouped, arguments)
    assert not result.resources.has_spills and result.remarks() == ()
