"""Every kernel of the families, lowered by stock MLIR and run, agrees with the interpreter."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tests.corpus.case import Array, Values, is_float
from tests.corpus.run import guarded
from tests.mlir.families import Kernel, all_kernels
from tilewright.testing import assert_close

KERNELS = all_kernels()
# Sums, products and functions of a kernel round at most so often; float16 rounds its results.
TOLERANCE = {2: 4e-3, 4: 3e-5, 8: 1e-11}
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


def inputs_of(kernel: Kernel) -> Values:
    """Fresh arguments, the same every time."""
    return kernel.inputs(np.random.default_rng(zlib.crc32(kernel.name.encode())))


def run(kernel: Kernel, is_interpreted: bool) -> dict[str, Array]:
    memory = guarded(inputs_of(kernel))
    function = kernel.kernel.interpret if is_interpreted else kernel.kernel
    function[kernel.grid](**memory.values, enable_fp_fusion=False)
    memory.require_guards(kernel.name)
    return memory.arrays()


def agree(kernel: Kernel) -> None:
    """Fail where MLIR's result is not the interpreter's."""
    expected = run(kernel, is_interpreted=True)
    for name, got in run(kernel, is_interpreted=False).items():
        right = expected[name]
        if is_float(right.dtype):
            tolerance = TOLERANCE[right.dtype.itemsize]
            assert_close(got, right, tolerance, tolerance, f"{kernel.name}: `{name}`")
        else:
            np.testing.assert_array_equal(got, right, f"{kernel.name}: `{name}`")


def test_the_families_are_many() -> None:
    assert len(KERNELS) >= 300
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


@pytest.mark.mlir
@every_kernel
def test_the_kernel_agrees_with_the_interpreter(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_TARGET", "mlir")
    agree(kernel)
