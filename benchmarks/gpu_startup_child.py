"""The process that `gpu_startup` measures.

Run as `python gpu_startup_child.py ours|theirs KERNEL CACHE_DIRECTORY`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
PATHS = {"ours": (str(ROOT), str(ROOT / "src" / "tilewright" / "_alias")), "theirs": (str(ROOT),)}


def main(who: str, kernel: str, cache: str) -> None:
    """Run one kernel once and print the seconds from the import on."""
    os.environ["TILEWRIGHT_CACHE_DIR"] = cache
    os.environ["TRITON_CACHE_DIR"] = cache
    sys.path[:0] = PATHS[who]
    arguments = ARGUMENTS[kernel]()
    torch.cuda.synchronize()
    started = time.perf_counter()
    kernels = importlib.import_module("benchmarks.gpu_kernels")
    grid, positional, keywords = arguments
    getattr(kernels, kernel)[grid](*positional, **keywords)
    torch.cuda.synchronize()
    print(json.dumps({"seconds": time.perf_counter() - started}))


def add_arguments() -> tuple[tuple[int, ...], tuple[object, ...], dict[str, object]]:
    """Vector add of a thousand elements."""
    x, y, out = (torch.ones(1000, device="cuda") for _ in range(3))
    return (1,), (x, y, out, 1000), {"BLOCK": 1024}


def matmul_arguments() -> tuple[tuple[int, ...], tuple[object, ...], dict[str, object]]:
    """A product of 512³ in fp16."""
    a, b, c = (torch.ones(512, 512, device="cuda", dtype=torch.float16) for _ in range(3))
    strides = (512, 512, 512)
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8}
    return (16,), (a, b, c, 512, 512, 512, *strides), {**blocks, "num_warps": 8, "num_stages": 1}


def attention_arguments() -> tuple[tuple[int, ...], tuple[object, ...], dict[str, object]]:
    """Attention forward of 8 heads of 1024 positions."""
    q, k, v, out = (torch.ones(8, 1024, 128, device="cuda", dtype=torch.float16) for _ in range(4))
    keywords = {"CAUSAL": True, "HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 64}
    return (8, 8), (q, k, v, out, 1024, 0.1), {**keywords, "num_warps": 8, "num_stages": 1}


ARGUMENTS = {
    "add": add_arguments,
    "matmul": matmul_arguments,
    "attention": attention_arguments,
}


if __name__ == "__main__":
    main(*sys.argv[1:])
