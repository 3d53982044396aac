"""How the fuzzer runs a program on the GPU."""

from __future__ import annotations

import numpy as np

import torch
from tests.corpus.case import Case
from tests.gpu.test_corpus import DeviceMemory


def run_on_gpu(case: Case) -> dict[str, np.ndarray]:
    """What the arrays hold after a launch on the GPU."""
    memory = DeviceMemory(case)
    case.kernel[case.grid](**memory.arguments, enable_fp_fusion=False, **case.options)
    torch.cuda.synchronize()
    return memory.arrays()
