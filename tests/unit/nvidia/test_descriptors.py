"""Tensor descriptors by the copy engine, in the simulator beside the interpreter."""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl
from tests.unit.nvidia.descriptor_launching import check
from tilewright.runtime.tensor_descriptor import TensorDescriptor


@tilewright.jit
def copy_block(source, target, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([i, j], source.load([i, j]))


def test_a_copy_moves_every_block() -> None:
    x = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    source = TensorDescriptor.from_tensor(x, (32, 64))
    target = TensorDescriptor.from_tensor(np.zeros_like(x), (32, 64))
    check(copy_block, (2, 2), source, target, 32, 64)
