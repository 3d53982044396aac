"""Kernels that wait for memory: vector add, softmax, layer norm, beside Triton and a copy."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_timing import Run, Times, close_to, compared, measure
from benchmarks.harness import Row

FAMILY = "gpu memory"
ADD_SIZE = 1 << 28
SOFTMAX_SHAPES = {(8192, 4096): (8, 0.90), (8192, 16384): (16, 0.94), (32768, 1024): (4, 0.90)}
NORM_SHAPE = (8192, 4096)
TRITON_BAR = 0.98


def rows() -> Iterator[Row]:
    """Every row of this family."""
    yield from add_rows()
    for (height, width), (num_warps, bar) in SOFTMAX_SHAPES.items():
        yield from softmax_rows(height, width, num_warps, bar)
    yield from layer_norm_rows()


def copy_of(num_bytes: int) -> Run:
    """A device copy that moves as many bytes, read and written together."""
    source = torch.empty(num_bytes // 2, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def both(
    work: str, ours: Run, theirs: Run, num_bytes: int, copy_bar: float | None
) -> Iterator[Row]:
    """A row beside Triton, and with a bar one beside a copy of the same bytes."""
    times: list[Times] = measure(ours, theirs, copy_of(num_bytes))
    yield compared(FAMILY, work, times[0], times[1], TRITON_BAR, num_bytes / 1e12, "TB/s")
    if copy_bar is not None:
        name = f"{work}, beside a copy"
        yield compared(FAMILY, name, times[0], times[2], copy_bar, num_bytes / 1e12, "TB/s", "copy")


def add_rows() -> Iterator[Row]:
    """Vector add."""
    x, y = (torch.randn(ADD_SIZE, device="cuda") for _ in range(2))
    out = torch.empty_like(x)
    grid = (ADD_SIZE // 1024,)

    def run_with(kernel) -> Run:
        return lambda: kernel[grid](x, y, out, ADD_SIZE, BLOCK=1024)

    ours, theirs = run_with(gpu_peers.ours().add), run_with(gpu_peers.theirs().add)
    ours()
    close_to(out, x + y, 0)
    yield from both("vector add f32 2^28", ours, theirs, 12 * ADD_SIZE, 0.97)


def softmax_rows(height: int, width: int, num_warps: int, bar: float) -> Iterator[Row]:
    """Softmax of whole rows."""
    x = torch.randn(height, width, device="cuda")
    out = torch.empty_like(x)

    def run_with(kernel) -> Run:
        return lambda: kernel[(height,)](x, out, width, width, BLOCK=width, num_warps=num_warps)

    ours, theirs = run_with(gpu_peers.ours().softmax), run_with(gpu_peers.theirs().softmax)
    ours()
    close_to(out, x.softmax(1), 1e-6)
    work = f"softmax f32 {height}x{width}"
    yield from both(work, ours, theirs, 8 * height * width, bar)


def layer_norm_rows() -> Iterator[Row]:
    """Layer norm forward and backward."""
    height, width = NORM_SHAPE
    options = {"BLOCK": width, "num_warps": 8}
    x, dy, out, dx = (
        torch.randn(height, width, device="cuda", dtype=torch.bfloat16) for _ in range(4)
    )
    weight, bias = (torch.randn(width, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    mean, rstd = (torch.empty(height, device="cuda") for _ in range(2))
    parts = torch.cuda.get_device_properties(0).multi_processor_count * 4
    dw, db = (torch.empty(parts, width, device="cuda") for _ in range(2))

    def forward(kernel) -> Run:
        arguments = (x, out, weight, bias, mean, rstd, width, width, 1e-5)
        return lambda: kernel[(height,)](*arguments, **options)

    def backward(kernel) -> Run:
        arguments = (dx, dy, dw, db, x, weight, mean, rstd, width, width, height)
        return lambda: kernel[(parts,)](*arguments, **options)

    ours, theirs = gpu_peers.ours(), gpu_peers.theirs()
    forward(ours.layer_norm)()
    expected = torch.nn.functional.layer_norm(x.float(), (width,), weight.float(), bias.float())
    close_to(out, expected, 4e-3)
    num_bytes = 4 * height * width
    runs = forward(ours.layer_norm), forward(theirs.layer_norm)
    yield from both("layer norm forward bf16 8192x4096", *runs, num_bytes, None)
    runs = backward(ours.layer_norm_backward), backward(theirs.layer_norm_backward)
    yield from both("layer norm backward bf16 8192x4096", *runs, 6 * height * width, None)
