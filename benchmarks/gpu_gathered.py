"""Loads that no box describes: rows that indices name, and pages of keys and values.

Each schedule of ours is a row beside Triton with the fastest of its stages and blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_matrix import LOG2_E
from benchmarks.gpu_schedules import working
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
from benchmarks.harness import Row

FAMILY = "gpu gathered"
Options = Mapping[str, Any]
TOKENS, ROWS, COLUMNS, DEPTH = 16384, 8192, 4096, 4096
HEADS, LENGTH, HEAD_DIM, PAGE = 64, 4096, 128, 16
STAGES = tuple({"num_warps": 8, "num_stages": stages} for stages in (2, 3, 4))
SCHEDULES: Mapping[str, Sequence[Options]] = {
    "nothing said": ({"num_warps": 8},),
    "pipelined": STAGES,
    "in roles": (
        {"num_warps": 4, "num_consumer_groups": 1},
        {"num_warps": 4, "num_consumer_groups": 2},
    ),
}


def rows() -> Iterator[Row]:
    """A product of gathered rows, then attention over pages."""
    yield from product_rows()
    yield from paged_rows()


def product_rows() -> Iterator[Row]:
    """a[rows] @ b, bfloat16."""
    a = torch.randn(TOKENS, DEPTH, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(DEPTH, COLUMNS, device="cuda", dtype=torch.bfloat16)
    c = torch.empty(ROWS, COLUMNS, device="cuda", dtype=torch.bfloat16)
    chosen = torch.randperm(TOKENS, device="cuda")[:ROWS].to(torch.int32)

    def run_with(kernel, blocks: tuple[int, int], options: Options) -> Run:
        m, n = blocks
        launch = kernel[(ROWS // m * (COLUMNS // n),)]
        sizes = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP_M": 8}
        return lambda: launch(a, chosen, b, c, ROWS, COLUMNS, DEPTH, **sizes, **options)

    def runs(kernel, choices: Sequence[Options]) -> list[Run]:
        blocks = ((128, 256), (128, 128), (256, 128))
        return [run_with(kernel, each, options) for each in blocks for options in choices]

    def check() -> None:
        close_to(c, a[chosen] @ b, 4e-3)

    work = f"a[rows] @ b bfloat16 {ROWS}x{COLUMNS}x{DEPTH}"
    flops = 2 * ROWS * COLUMNS * DEPTH / 1e12
    yield from _rows_of("gathered_product", runs, check, work, flops)


def paged_rows() -> Iterator[Row]:
    """Attention of heads whose pages lie in any order, bfloat16."""
    shape = (HEADS, LENGTH, HEAD_DIM)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out = torch.empty_like(q)
    table = torch.randperm(HEADS * LENGTH // PAGE, device="cuda").to(torch.int32)

    def run_with(kernel, blocks: tuple[int, int], options: Options) -> Run:
        m, n = blocks
        launch = kernel[(LENGTH // m, HEADS)]
        sizes = {"HEAD_DIM": HEAD_DIM, "BLOCK_M": m, "BLOCK_N": n, "PAGE": PAGE}
        scale = LOG2_E / HEAD_DIM**0.5
        return lambda: launch(q, k, v, table, out, LENGTH, scale, **sizes, **options)

    def runs(kernel, choices: Sequence[Options]) -> list[Run]:
        blocks = ((128, 128), (128, 64))
        return [run_with(kernel, each, options) for each in blocks for options in choices]

    def check() -> None:
        places = table.long().view(HEADS, -1)
        keys, values = (x.view(-1, PAGE, HEAD_DIM)[places].view(shape) for x in (k, v))
        attention = torch.nn.functional.scaled_dot_product_attention
        close_to(out, attention(q[None], keys[None], values[None])[0], 1e-2)

    work = f"attention bfloat16 {shape} over pages of {PAGE}"
    yield from _rows_of(
        "paged_attention", runs, check, work, 4 * HEADS * LENGTH**2 * HEAD_DIM / 1e12
    )


def _rows_of(name: str, runs, check, work: str, flops: float) -> Iterator[Row]:
    own = getattr(gpu_peers.ours(), name)
    found: dict[str, Run] = {}
    for schedule, choices in SCHEDULES.items():
        found[schedule] = fastest(working(runs(own, choices)))
        found[schedule]()
        check()
    peer = fastest(working(runs(getattr(gpu_peers.theirs(), name), STAGES)))
    times = measure(*found.values(), peer)
    for schedule, mine in zip(found, times, strict=False):
        yield compared(FAMILY, f"{work}, {schedule}", mine, times[-1], None, flops, "TFLOP/s")
