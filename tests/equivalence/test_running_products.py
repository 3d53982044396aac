"""Products that run until something needs them: the bits of products that end at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.targets.nvidia.attention_cases import (
    KERNELS,
    Attention,
    array_in,
    backward_arguments,
    backward_expected,
    require_close,
)
from tilewright.ir.op import Array
from tilewright.schedule.partition import wait_in_loops

LENGTH = 256


def gradients(case: Attention, **options: object) -> list[Array]:
    """What the threads of a GPU make of the gradients of a case."""
    arguments = backward_arguments(case)
    KERNELS["backward"].simulate[case.grid](*arguments, **case.options(), **options)
    require_close("backward", case, arguments, backward_expected(case))
    return [array_in(arguments[index]) for index in (4, 5, 6)]


def require_same(found: Sequence[Array], expected: Sequence[Array]) -> None:
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("is_causal", [False, True])
def test_running_products_of_one_program_have_the_bits_of_ended_ones(
    is_causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Attention("pointers", "float16", is_causal, 64, 128, 32, 4, n=LENGTH)
    found = gradients(case)
    with monkeypatch.context() as patch:
        patch.setattr(wait_in_loops, "_is_fit", lambda loop: False)
        expected = gradients(case)
    require_same(found, expected)


def test_gradients_run_as_roles_unasked_with_the_bits_of_one_program() -> None:
    case = Attention("pointers", "float16", True, 128, 128, 32, 4, n=LENGTH)
    require_same(gradients(case), gradients(case, num_consumer_groups=0))
