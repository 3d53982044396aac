"""Products by weights of 8 and 4 bits, from one row on: each beside Triton's fastest of the same.

A cold call, as a step of decoding finds its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_schedules import working
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
from benchmarks.harness import Row

FAMILY = "gpu weights"
COLUMNS = DEPTH = 4096
GROUP = 128
ROWS = (1, 17, 64, 250)
Choice = tuple[int, int, int, int]
# Rows, columns and depth of a tile, and warps.
SMALL: tuple[Choice, ...] = ((16, 64, 64, 4), (16, 64, 128, 4))
LARGE: tuple[Choice, ...] = ((64, 64, 64, 4), (64, 128, 64, 8))
STAGES = (3, 4)
Launch = Callable[[ModuleType, Choice, Mapping[str, int]], Run]


def rows() -> Iterator[Row]:
    """Weights of 8 bits, scaled behind the loop and in each step, and weights of 4 bits."""
    for dtype in (torch.float16, torch.bfloat16):
        for m in ROWS:
            for name in ("int8", "int8 scaled by 64 or 128 rows", "4 bits by groups of 128"):
                yield from _row(name, m, dtype)


def _row(name: str, m: int, dtype: torch.dtype) -> Iterator[Row]:
    launch, check = (_nibbles if name[0] == "4" else _bytes)(m, dtype, "scaled" in name)
    choices = LARGE if m > 32 else SMALL

    def best(module: ModuleType, options: tuple[Mapping[str, int], ...]) -> Run:
        runs = [launch(module, choice, each) for choice in choices for each in options]
        return fastest(working(runs))

    staged = tuple({"num_stages": stages} for stages in STAGES)
    ours = best(gpu_peers.ours(), ({}, staged[0]))
    ours()
    check()
    peer = best(gpu_peers.theirs(), staged)
    own, theirs = measure(ours, peer)
    work = f"{m}x{COLUMNS}x{DEPTH} {str(dtype).removeprefix('torch.')} by weights of {name}"
    flops = 2 * m * COLUMNS * DEPTH / 1e12
    yield compared(FAMILY, work, own, theirs, 1.0, flops, "TFLOP/s")


def _bytes(m: int, dtype: torch.dtype, each_step: bool) -> tuple[Launch, Callable[[], None]]:
    a = torch.randn(m, DEPTH, device="cuda").to(dtype)
    b = torch.randint(-8, 8, (DEPTH, COLUMNS), device="cuda", dtype=torch.int8)
    scales = torch.rand(DEPTH // 64, COLUMNS, device="cuda") + 0.5
    c, last = torch.empty(m, COLUMNS, device="cuda", dtype=dtype), [64]

    def launch(module: ModuleType, choice: Choice, options: Mapping[str, int]) -> Run:
        rows, columns, depth, warps = choice
        kernel = module.product_of_bytes[(-(-m // rows) * (COLUMNS // columns),)]
        tile = {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth, "EACH_STEP": each_step}
        said = {**tile, "num_warps": warps, **options}

        def run() -> None:
            last[0] = depth
            kernel(a, b, scales, c, m, COLUMNS, DEPTH, **said)

        return run

    def check() -> None:
        own = scales[: DEPTH // last[0]].repeat_interleave(last[0], 0) if each_step else scales[0]
        close_to(c, a.double() @ (b * own).double(), 1e-2)

    return launch, check


def _nibbles(m: int, dtype: torch.dtype, _: bool) -> tuple[Launch, Callable[[], None]]:
    a = torch.randn(m, DEPTH, device="cuda").to(dtype)
    low, high = -(1 << 31), (1 << 31) - 1
    words = {"device": "cuda", "dtype": torch.int32}
    b = torch.randint(low, high, (DEPTH // 8, COLUMNS), **words)
    zeros = torch.randint(low, high, (DEPTH // GROUP, COLUMNS // 8), **words)
    scales = (torch.rand(DEPTH // GROUP, COLUMNS, device="cuda") / 8).to(dtype)
    c = torch.empty(m, COLUMNS, device="cuda", dtype=dtype)

    def launch(module: ModuleType, choice: Choice, options: Mapping[str, int]) -> Run:
        rows, columns, depth, warps = choice
        kernel = module.product_of_nibbles[(-(-m // rows) * (COLUMNS // columns),)]
        tile = {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth, "GROUP": GROUP}
        arguments: tuple[Any, ...] = (a, b, scales, zeros, c, m, COLUMNS, DEPTH)
        return lambda: kernel(*arguments, **tile, num_warps=warps, **options)

    def check() -> None:
        shifts = torch.arange(0, 32, 4, device="cuda")
        weights = (b[:, None] >> shifts[None, :, None] & 15).reshape(DEPTH, COLUMNS)
        less = (zeros[:, :, None] >> shifts & 15).reshape(-1, COLUMNS).repeat_interleave(GROUP, 0)
        scaled = (weights - less) * scales.repeat_interleave(GROUP, 0)
        close_to(c, a.double() @ scaled.double(), 1e-2)

    return launch, check
