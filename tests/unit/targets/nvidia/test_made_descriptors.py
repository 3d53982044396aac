"""Descriptors made in kernels: by the launch, by programs, or of pointers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.targets.nvidia.descriptor_kernels import (
    chosen,
    chosen_rows,
    described,
    grouped,
    grouped_arguments,
    made_by_program,
    made_here,
    made_of_three,
    made_with_nan,
    numbers,
    sum_blocks,
)
from tests.unit.targets.nvidia.descriptor_launching import check, count, lowered
from tilewright.support.errors import ArgumentNotSupported
from tilewright.targets.nvidia.tma_ops import MakeTensorMapOp, TmaLoadOp, TmaStoreOp


def test_a_made_map_fills_with_nan_too() -> None:
    x = numbers((32, 16))
    check(made_with_nan, (1,), x, 0 * x, np.array([16], np.int32), 16)


def test_a_descriptor_made_of_arguments_is_made_by_the_launch() -> None:
    x = numbers((40, 64), "int32")
    arguments = [x, 0 * x, 40, 64, 16, 32]
    check(made_here, (1,), *arguments)
    assert count(made_here, arguments, TmaLoadOp, TmaStoreOp) == 2


def test_a_descriptor_that_differs_between_programs_is_made_by_them() -> None:
    x = numbers((64, 32))
    arguments = [x, 0 * x, 32, 32, 16, 32]
    check(made_by_program, (2,), *arguments)
    assert count(made_by_program, arguments, MakeTensorMapOp) == 1
    assert count(made_by_program, arguments, TmaLoadOp, TmaStoreOp) == 2


def test_a_program_makes_maps_again_and_again() -> None:
    arguments = grouped_arguments([(64, 32, 32), (72, 40, 48), (8, 64, 64)])
    check(grouped, (3,), *arguments, tolerance=1e-6)
    assert count(grouped, arguments, MakeTensorMapOp) == 3


def test_made_maps_have_any_rank_and_are_combined_through() -> None:
    x = numbers((392,), "int32")
    check(made_of_three, (1,), x, 0 * x, np.array([8], np.int32), 2, 4, 16)


@pytest.mark.parametrize("flag", [0, 1])
def test_a_descriptor_that_control_flow_chooses_is_made_of_pointers(flag: int) -> None:
    x = numbers((16, 16))
    arguments = [x, x + 100, 0 * x, np.array([flag], np.int32), 16]
    check(chosen, (1,), *arguments)
    (remark,) = lowered(chosen, arguments, {}).scheduled.remarks
    assert "the load through a descriptor is made of pointers" in remark
    assert "depends on control flow" in remark


def test_rows_by_their_numbers_are_made_of_pointers() -> None:
    x = numbers((20, 32))
    rows = np.array([3, 1, 4, 19, 5, 9, 2, 6], np.int32)
    arguments = [described(x, (1, 16)), described(0 * x, (1, 16)), rows]
    arguments.append(described(numbers((8, 16)), (8, 16)))
    check(chosen_rows, (1,), *arguments, 16)
    remarks = lowered(chosen_rows, [*arguments, 16], {}).scheduled.remarks
    assert sum("no rows by their numbers" in remark for remark in remarks) == 2


def test_an_unaligned_tensor_is_refused_by_name() -> None:
    x = numbers((40, 66), "int32")
    arguments = [x, 0 * x, 40, 66, 16, 32]
    with pytest.raises(ArgumentNotSupported, match=r"argument 0.*stride 0 of 264 bytes"):
        check(made_here, (1,), *arguments)
    check(made_here, (1,), *arguments, descriptors="pointers")


def test_blocks_that_do_not_fit_together_are_made_of_pointers() -> None:
    x = numbers((64, 512))
    tensors = [described(array, (64, 256)) for array in (x, x + 1, x + 2, 0 * x)]
    arguments = [*tensors, 64, 256]
    check(sum_blocks, (1,), *arguments)
    remarks = lowered(sum_blocks, arguments, {}).scheduled.remarks
    assert len([r for r in remarks if "other blocks take the shared memory" in r]) == 2
