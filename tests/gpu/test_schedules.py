"""Every schedule of products and attention on a GPU: the bits of the order without a pipeline."""

from __future__ import annotations

import numpy as np
import pytest

import torch
from examples.grouped_gemm import grouped_gemm_kernel
from tests.corpus.case import Case, check
from tests.corpus.scheduled import THREE, Form, forms
from tests.gpu.test_corpus import DeviceMemory

pytestmark = pytest.mark.gpu

STRAIGHT = {"num_stages": 1, "bulk_access": "never", "descriptors": "pointers"}


def launched(case: Case, options: dict[str, object]) -> dict[str, np.ndarray]:
    """What the arrays hold after a launch; memory around them is as it was."""
    memory = DeviceMemory(case)
    given = {**case.options, "deadlock_seconds": 5, **options}
    case.kernel[case.grid](**memory.arguments, enable_fp_fusion=False, **given)
    torch.cuda.synchronize()
    return memory.arrays()


@pytest.mark.parametrize("form", forms(), ids=str)
def test_a_schedule_changes_no_bit(form: Form) -> None:
    found = launched(form.case, form.options)
    check(form.case, found, form.case.expected(), str(form))
    straight = STRAIGHT
    if form.case in THREE:  # tiles that groups alone can have
        straight = {"num_consumer_groups": 3, "num_buffers_warp_spec": 1}
    expected = launched(form.case, straight)
    for name, values in expected.items():
        same = found[name].view(np.uint8) == values.view(np.uint8)
        assert same.all(), f"{name}: {(~same).sum()} bytes of {same.size} differ"


@pytest.mark.parametrize("stages", [2, 3, 4, 5])
def test_grouped_products_change_no_bit(stages: int) -> None:
    torch.manual_seed(stages)
    shapes = ((200, 136, 104), (64, 64, 64), (17, 72, 264))
    pairs = [(torch.randn(m, k).cuda(), torch.randn(k, n).cuda()) for m, n, k in shapes]
    outs = {key: [torch.full((m, n), 7.0).cuda() for m, n, _ in shapes] for key in (1, stages)}
    sizes = torch.tensor(shapes, dtype=torch.int32).cuda()
    for key, results in outs.items():
        places = [
            [t.data_ptr() for t in (a, b, c)] for (a, b), c in zip(pairs, results, strict=True)
        ]
        grouped_gemm_kernel[(5,)](
            torch.tensor(places).cuda(), sizes, 3, NUM_PROGRAMS=5,
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=key,
        )  # fmt: skip
    torch.cuda.synchronize()
    for one, other, (a, b) in zip(outs[1], outs[stages], pairs, strict=True):
        assert torch.equal(one, other)
        torch.testing.assert_close(one, (a.double() @ b.double()).float(), atol=1e-3, rtol=1e-3)
