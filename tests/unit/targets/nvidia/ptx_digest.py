"""Prints a digest of the PTX of some kernels; `python -m tests.unit.targets.nvidia.ptx_digest`."""

from __future__ import annotations

import hashlib

from tests.corpus.everything import FAMILIES
from tests.corpus.threads import lower_for_gpu
from tests.ptxas.kernels import launch_ptx
from tilewright.targets.nvidia.ptx import to_ptx

BENCHMARKS = ("softmax", "layer_norm_backward", "matmul", "attention_causal")


def digests() -> list[tuple[str, str]]:
    """The name and the digest of each kernel's PTX."""
    texts = [(name, launch_ptx(name)) for name in BENCHMARKS]
    for name in ("reductions", "shapes", "indexing", "blocks"):
        case = FAMILIES[name][0]
        threads = lower_for_gpu(case)
        texts.append((case.name, to_ptx(threads.text, threads.request.machine)))
    return [(name, hashlib.sha256(text.encode()).hexdigest()) for name, text in texts]


if __name__ == "__main__":
    for name, digest in digests():
        print(name, digest)
