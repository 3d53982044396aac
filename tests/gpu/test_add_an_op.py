"""The ops of "Add an op", which are another package's, on the GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_add_an_op import PAGE, output_of
from tests.docs.test_code_blocks import write_files

pytestmark = pytest.mark.gpu

PROGRAM = """
import torch


@tilewright.jit
def kernel(x_ptr, out_ptr, rows: tl.constexpr, columns: tl.constexpr, axis: tl.constexpr):
    base = tl.program_id(0) * (rows * columns)
    at = base + tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :]
    x = softplus(tl.load(x_ptr + at))
    for _ in range(2):
        x = running_maximum(x - 0.5, axis)
    tl.store(out_ptr + at, x)


for rows, columns, axis in ((1, 8, 1), (16, 64, 0), (16, 64, 1), (512, 4, 1), (128, 128, 0)):
    x = (rng.standard_normal((17, rows, columns)) * 20).astype(np.float32)
    wanted = np.logaddexp(x, 0)
    for _ in range(2):
        wanted = np.maximum.accumulate(wanted - np.float32(0.5), axis=axis + 1)
    given = torch.from_numpy(x).cuda()
    out = torch.zeros_like(given)
    kernel[(17,)](given, out, rows, columns, axis)
    np.testing.assert_allclose(out.cpu().numpy(), wanted, rtol=1e-5, atol=1e-6)
print("the same")
"""


def test_ops_of_another_package_run_on_the_gpu(tmp_path: Path) -> None:
    write_files(PAGE.read_text(encoding="utf-8"), tmp_path)
    assert output_of(tmp_path, PROGRAM) == "the same\n"
