"""Loops without products that load the next row while they compute this one.

Each compiler has the fastest of the same programs a multiprocessor, warps and stages.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_memory_bound import copy_of
from benchmarks.gpu_timing import Run, close_to, compared, measure
from benchmarks.harness import Row

FAMILY = "gpu rows ahead"
COPY_BAR, TRITON_BAR = 0.97, 1.0
# Height and width, with the programs a multiprocessor and the warps that are tried; as many
# programs as 62 and 124 a multiprocessor have a row or two each.
SOFTMAX_SHAPES = {
    (8192, 4096): ((4, 31, 62), (4, 8, 16)),
    (8192, 8000): ((2, 31, 62), (8, 16)),
    (32768, 1024): ((16, 62, 124), (2, 4, 8)),
}
NORM_SHAPE = (8192, 4096)
SUM_SIZE = (1 << 27) + 3
STAGES = (1, 2, 3, 4)
Choice = tuple[int, int, int]


def rows() -> Iterator[Row]:
    """Softmax, layer norm, and a loop over blocks of vectors."""
    for (height, width), (densities, warps) in SOFTMAX_SHAPES.items():
        yield from softmax_rows(height, width, choices(densities, warps))
    yield from layer_norm_rows(choices((2, 4, 8), (4, 8)))
    yield from sum_rows(choices((4, 8), (4, 8)))


def choices(densities: Sequence[int], warps: Sequence[int]) -> list[Choice]:
    """Programs of the grid, warps of each, and stages of its loop."""
    num_sms = torch.cuda.get_device_properties(0).multi_processor_count
    return [
        (num_sms * density, num_warps, stages)
        for density, num_warps, stages in itertools.product(densities, warps, STAGES)
    ]


def softmax_rows(height: int, width: int, tried: Sequence[Choice]) -> Iterator[Row]:
    """Softmax of float32 rows."""
    x = torch.randn(height, width, device="cuda")
    out = torch.empty_like(x)
    block = 1 << (width - 1).bit_length()

    def run_with(kernel, choice: Choice) -> Run:
        grid, num_warps, stages = choice
        sizes = {"BLOCK": block, "STAGES": stages, "num_warps": num_warps}
        return lambda: kernel[(grid,)](x, out, width, height, width, **sizes)

    def check() -> None:
        close_to(out, x.softmax(1), 1e-6)

    work = f"softmax f32 {height}x{width} in a loop over rows"
    yield from _compared(work, "softmax_rows", run_with, tried, check, 8 * height * width)


def layer_norm_rows(tried: Sequence[Choice]) -> Iterator[Row]:
    """Layer norm of bfloat16 rows."""
    height, width = NORM_SHAPE
    x = torch.randn(height, width, device="cuda", dtype=torch.bfloat16)
    weight, bias = (torch.randn(width, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(x)

    def run_with(kernel, choice: Choice) -> Run:
        grid, num_warps, stages = choice
        arguments = (x, out, weight, bias, width, height, width, 1e-5)
        sizes = {"BLOCK": width, "STAGES": stages, "num_warps": num_warps}
        return lambda: kernel[(grid,)](*arguments, **sizes)

    def check() -> None:
        expected = torch.nn.functional.layer_norm(x.float(), (width,), weight.float(), bias.float())
        close_to(out, expected, 4e-3)

    work = f"layer norm bf16 {height}x{width} in a loop over rows"
    yield from _compared(work, "layer_norm_rows", run_with, tried, check, 4 * height * width)


def sum_rows(tried: Sequence[Choice]) -> Iterator[Row]:
    """A scaled sum of vectors whose length no block divides."""
    x, y = (torch.randn(SUM_SIZE, device="cuda") for _ in range(2))
    out = torch.empty_like(x)

    def run_with(kernel, choice: Choice) -> Run:
        grid, num_warps, stages = choice
        sizes = {"BLOCK": 2048, "STAGES": stages, "num_warps": num_warps}
        return lambda: kernel[(grid,)](x, y, out, SUM_SIZE, 0.5, **sizes)

    def check() -> None:
        close_to(out, x * 0.5 + y, 1e-6)

    work = "scaled sum f32 2^27 + 3 in a loop over blocks"
    yield from _compared(work, "scaled_sum", run_with, tried, check, 12 * SUM_SIZE)


def _fastest(runs: Sequence[Run]) -> Run:
    """The fastest, each measured alone: launchers remember a few variants of a kernel only."""
    times = [measure(run, samples=7)[0].median for run in runs]
    return min(zip(runs, times, strict=True), key=lambda pair: pair[1])[0]


def _compared(work, kernel: str, run_with, tried, check, num_bytes: int) -> Iterator[Row]:
    """A row beside Triton, one beside a copy of the same bytes, and one beside no stages."""
    own = getattr(gpu_peers.ours(), kernel)
    runs = {choice: run_with(own, choice) for choice in tried}
    ours = _fastest(list(runs.values()))
    plain = _fastest([run for choice, run in runs.items() if choice[2] == 1])
    theirs = _fastest([run_with(getattr(gpu_peers.theirs(), kernel), choice) for choice in tried])
    ours()
    check()
    times = measure(ours, theirs, copy_of(num_bytes), plain)
    amount = num_bytes / 1e12
    best = next(choice for choice, run in runs.items() if run is ours)
    note = f"{best[0]} programs of {best[1]} warps, {best[2]} stages"
    print(f"{work}: {note}", flush=True)
    yield compared(FAMILY, work, times[0], times[1], TRITON_BAR, amount, "TB/s")
    name = f"{work}, beside a copy"
    yield compared(FAMILY, name, times[0], times[2], COPY_BAR, amount, "TB/s", "copy")
    name = f"{work}, beside one stage"
    yield compared(FAMILY, name, times[0], times[3], None, amount, "TB/s", "one stage")
