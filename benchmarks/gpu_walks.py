"""Products by pointers whose programs take one tile after the other, beside cuBLAS and Triton.

Tiles are as far apart as there are programs, one for each multiprocessor, or neighbours. Sizes
that no block divides are among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from types import ModuleType
from typing import Any

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_schedules import IN_CLUSTERS, IN_ROLES, working
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
from benchmarks.harness import Row

FAMILY = "gpu walks over tiles"
PRODUCTS = ((8192, 8192, 8192), (4000, 5000, 3000), (8192, 8192, 1024))
WALKS = ("strided", "chunked", "counted", "carried", "flattened", "while")
BLOCKS = ((128, 256, 64), (128, 128, 64))
Options = Mapping[str, Any]
STAGES = tuple({"num_warps": 8, "num_stages": stages} for stages in (3, 4))
OURS = ({"num_warps": 4}, {"num_warps": 8}, IN_ROLES, IN_CLUSTERS)


def rows() -> Iterator[Row]:
    """Each size in each walk."""
    for size in PRODUCTS:
        for walk in WALKS:
            yield from _rows(size, walk)


def _rows(size: tuple[int, int, int], walk: str) -> Iterator[Row]:
    m, n, k = size
    shapes = (m, k), (k, n), (m, n)
    a, b, out = (torch.randn(shape, device="cuda").to(torch.bfloat16) for shape in shapes)
    c = torch.empty_like(out)
    num_programs = torch.cuda.get_device_properties(0).multi_processor_count

    def run_with(module: ModuleType, blocks: tuple[int, int, int], options: Options) -> Run:
        said = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), blocks, strict=True))
        said |= {"GROUP_M": 8, **options}
        is_flat = walk == "flattened"
        kernel = (module.flattened_product if is_flat else module.walked_product)[(num_programs,)]
        said |= {} if is_flat else {"WALK": walk}
        return lambda: kernel(a, b, c, *size, **said)

    def best(module: ModuleType, choices: tuple[Options, ...]) -> Run:
        runs = [run_with(module, *choice) for choice in product(BLOCKS, choices)]
        return fastest(working(runs))

    ours, theirs = best(gpu_peers.ours(), OURS), best(gpu_peers.theirs(), STAGES)
    ours()
    close_to(c, torch.matmul(a, b, out=out), 4e-3)
    times = measure(ours, theirs, lambda: torch.matmul(a, b, out=out))
    name = f"bfloat16 {m}x{n}x{k}, {walk}"
    amount = 2 * m * n * k / 1e12, "TFLOP/s"
    yield compared(FAMILY, f"{name}, beside cuBLAS", times[0], times[2], None, *amount, "cuBLAS")
    yield compared(FAMILY, name, times[0], times[1], 1.0, *amount)
