"""Loads that no box describes: rows that indices name, pages, experts, sequences of any length.

Each schedule of ours is a row beside Triton with the fastest of its stages and blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
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
EXPERTS, TOP, EXPERT_TOKENS, EXPERT_BLOCK = 8, 2, 8192, 128
SEQUENCE_HEADS, LENGTHS = 32, (4096, 1000, 6000, 517, 2049, 3000)
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
    """Products of gathered rows and of experts, attention over pages and of sequences."""
    yield from product_rows()
    yield from paged_rows()
    yield from expert_rows()
    yield from sequence_rows()


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


def expert_rows() -> Iterator[Row]:
    """Tokens by two of eight experts each, bfloat16, padded to blocks of 128."""
    a = torch.randn(EXPERT_TOKENS, DEPTH, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(EXPERTS, COLUMNS, DEPTH, device="cuda", dtype=torch.bfloat16)
    chosen = torch.rand(EXPERT_TOKENS, EXPERTS, device="cuda").argsort(1)[:, :TOP].reshape(-1)
    own = [(chosen == expert).nonzero()[:, 0] for expert in range(EXPERTS)]
    tiles = [-(-rows.numel() // EXPERT_BLOCK) for rows in own]
    total = sum(tiles)
    tokens = torch.full((total * EXPERT_BLOCK,), chosen.numel(), device="cuda", dtype=torch.int32)
    for expert, rows in enumerate(own):
        start = sum(tiles[:expert]) * EXPERT_BLOCK
        tokens[start : start + rows.numel()] = rows.to(torch.int32)
    numbers = torch.arange(EXPERTS, device="cuda", dtype=torch.int32)
    experts = numbers.repeat_interleave(torch.tensor(tiles, device="cuda"))
    padded = torch.tensor([total * EXPERT_BLOCK], device="cuda", dtype=torch.int32)
    c = torch.empty(chosen.numel(), COLUMNS, device="cuda", dtype=torch.bfloat16)

    def run_with(kernel, columns: int, options: Options) -> Run:
        launch = kernel[(total * (COLUMNS // columns),)]
        sizes = {"BLOCK_M": EXPERT_BLOCK, "BLOCK_N": columns, "BLOCK_K": 64, "GROUP_M": 8}
        arrays, rest = (a, b, c, tokens, experts, padded), (chosen.numel(), COLUMNS, DEPTH, TOP)
        return lambda: launch(*arrays, *rest, **sizes, **options)

    def runs(kernel, choices: Sequence[Options]) -> list[Run]:
        return [run_with(kernel, each, options) for each in (128, 256) for options in choices]

    def check() -> None:
        for expert, rows in enumerate(own):
            close_to(c[rows], a[rows // TOP] @ b[expert].T, 4e-3)

    work = f"{TOP} of {EXPERTS} experts bfloat16 {EXPERT_TOKENS}x{COLUMNS}x{DEPTH}"
    yield from _rows_of("expert_product", runs, check, work, 2 * c.numel() * DEPTH / 1e12)


def sequence_rows() -> Iterator[Row]:
    """Causal attention of sequences of 500 to 6000 tokens, one behind another, bfloat16."""
    starts = torch.tensor((0, *LENGTHS), device="cuda").cumsum(0).to(torch.int32)
    shape = (sum(LENGTHS), SEQUENCE_HEADS, HEAD_DIM)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out = torch.empty_like(q)

    def run_with(kernel, blocks: tuple[int, int], options: Options) -> Run:
        m, n = blocks
        launch = kernel[(-(-max(LENGTHS) // m), SEQUENCE_HEADS, len(LENGTHS))]
        sizes = {"HEAD_DIM": HEAD_DIM, "BLOCK_M": m, "BLOCK_N": n}
        scale = LOG2_E / HEAD_DIM**0.5
        return lambda: launch(q, k, v, starts, out, SEQUENCE_HEADS, scale, **sizes, **options)

    def runs(kernel, choices: Sequence[Options]) -> list[Run]:
        blocks = ((128, 128), (128, 64))
        return [run_with(kernel, each, options) for each in blocks for options in choices]

    def check() -> None:
        attention = torch.nn.functional.scaled_dot_product_attention
        for first, end in pairwise(starts.tolist()):
            parts = (x[first:end].transpose(0, 1)[None] for x in (q, k, v))
            close_to(out[first:end], attention(*parts, is_causal=True)[0].transpose(0, 1), 1e-2)

    work = f"causal attention bfloat16 of {len(LENGTHS)} sequences, {SEQUENCE_HEADS} heads of 128"
    flops = sum(2 * SEQUENCE_HEADS * n * n * HEAD_DIM for n in LENGTHS) / 1e12
    yield from _rows_of("sequence_attention", runs, check, work, flops)


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
