"""Attention backward in roles on a GPU, beside torch in float64."""

from __future__ import annotations

import pytest

import torch
from benchmarks.gpu_gradients import Forward, choices
from benchmarks.gpu_timing import close_to

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]
# cuDNN is 2.3e-3 to 2.7e-3 from float64 here.
_TOLERANCE = 4e-3


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("length", [128, 512, 1024])
def test_gradients_in_roles_are_those_of_float64(dim: int, is_causal: bool, length: int) -> None:
    forward = Forward.of((2, 3, length, dim), is_causal)
    wanted = expected(forward)
    for run, gradients in choices(forward):
        for _ in range(3):
            run()
            for found, one in zip(gradients, wanted, strict=True):
                close_to(found, one, _TOLERANCE)


def expected(forward: Forward) -> tuple[torch.Tensor, ...]:
    """The gradients of q, k and v in float64."""
    q, k, v = (t.double().requires_grad_() for t in (forward.q, forward.k, forward.v))
    attend = torch.nn.functional.scaled_dot_product_attention
    out = attend(q, k, v, is_causal=forward.is_causal)
    return torch.autograd.grad(out, (q, k, v), forward.grad.double())
