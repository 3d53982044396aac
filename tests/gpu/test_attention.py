"""Attention in every form on a GPU, forward and backward, beside torch in float64."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from tests.gpu.test_descriptors import on_gpu
from tests.unit.targets.nvidia.attention_cases import (
    ARGUMENTS,
    KERNELS,
    LISTED,
    LOG2_E,
    Attention,
    require_close,
)

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


def expected(torch: ModuleType, name: str, case: Attention) -> dict[int, np.ndarray]:
    """What torch's attention gives for the case, by the number of the argument."""
    inputs = case.inputs(4 if name == "backward" else 3)
    shape = (case.heads, case.n, case.depth)
    wide = [torch.from_numpy(x.astype(np.float64)).cuda().reshape(shape) for x in inputs]
    q, k, v = (x.requires_grad_() for x in wide[:3])
    attend = torch.nn.functional.scaled_dot_product_attention
    out = attend(q, k, v, is_causal=case.is_causal)
    if name == "forward":
        return {3: out.detach().reshape(-1, case.depth).cpu().numpy()}
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), wide[3])
    # The kernel leaves the scale of the scores to its caller.
    unscaled = LOG2_E / case.scale
    found = zip((4, 5, 6), (dq * unscaled, dk * unscaled, dv), strict=True)
    return {i: x.reshape(-1, case.depth).cpu().numpy() for i, x in found}


@pytest.mark.parametrize(("name", "case"), LISTED, ids=str)
def test_attention_is_what_torch_computes(torch: ModuleType, name: str, case: Attention) -> None:
    case = replace(case, n=512, heads=3)
    right = expected(torch, name, case)
    for _ in range(3):
        arguments = [on_gpu(torch, argument) for argument in ARGUMENTS[name](case)]
        KERNELS[name][case.grid](*arguments, **case.options())
        require_close(name, case, arguments, right)
