"""Plain kernels of descriptors under each schedule: none, pipelined, in roles; beside the peers.

The peers are Triton with the fastest of its stages, cuBLAS for products and cuDNN for attention.
Sizes that no block divides are among the products.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType

from torch.nn.attention import SDPBackend, sdpa_kernel

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_matrix import LOG2_E
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
from benchmarks.harness import Row

FAMILY = "gpu schedules"
PRODUCTS = ((8192, 8192, 8192), (4096, 4096, 4096), (8192, 8192, 1024), (4000, 5000, 3000))
BLOCKS = ((128, 256, 64), (256, 128, 64), (128, 128, 64))
ATTENTIONS = ((8, 16, 8192, 128), (4, 32, 4096, 64))
Options = Mapping[str, int]
SCHEDULES: Mapping[str, tuple[Options, ...]] = {
    "num_stages=1": ({"num_warps": 8, "num_stages": 1},),
    "pipelined": tuple({"num_warps": 8, "num_stages": stages} for stages in (2, 3, 4)),
    "in roles": ({"num_warps": 4, "num_consumer_groups": 2},),
}
TRITON = tuple({"num_warps": 8, "num_stages": stages} for stages in (2, 3, 4))


def rows() -> Iterator[Row]:
    """Products, then attention with and without a causal mask."""
    for size in PRODUCTS:
        yield from product_rows(*size)
    for shape in ATTENTIONS:
        for is_causal in (False, True):
            yield from attention_rows(shape, is_causal)


def product_rows(m: int, n: int, k: int) -> Iterator[Row]:
    """Each schedule with the fastest of its blocks."""
    a, b = (torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((m, k), (k, n)))
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    num_programs = torch.cuda.get_device_properties(0).multi_processor_count

    def run_with(module: ModuleType, blocks: tuple[int, int, int], options: Options) -> Run:
        rows, columns, depth = blocks
        pairs = ((a, [rows, depth]), (b, [depth, columns]), (c, [rows, columns]))
        descriptors = [module.TensorDescriptor.from_tensor(*pair) for pair in pairs]
        sizes = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), blocks, strict=True))
        kernel = module.matmul_tiles[(num_programs,)]
        return lambda: kernel(*descriptors, m, n, k, GROUP_M=8, **sizes, **options)

    def check() -> None:
        close_to(c, a @ b, 4e-3)

    def best(module: ModuleType, choices: tuple[Options, ...]) -> Run:
        runs = [run_with(module, blocks, options) for blocks in BLOCKS for options in choices]
        return fastest(_working(runs))

    work = f"matmul bfloat16 {m}x{n}x{k}"
    library = ("cuBLAS", lambda: torch.matmul(a, b, out=c))
    yield from _compared(work, best, library, check, 2 * m * n * k / 1e12)


def attention_rows(shape: tuple[int, int, int, int], is_causal: bool) -> Iterator[Row]:
    """Each schedule with blocks of 128 queries and 128 or 64 keys."""
    batch, heads, length, dim = shape
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out = torch.empty_like(q)

    def run_with(module: ModuleType, keys: int, options: Options) -> Run:
        blocks = ((q, 128), (k, keys), (v, keys), (out, 128))
        descriptors = [
            module.TensorDescriptor.from_tensor(tensor.view(-1, dim), [rows, dim])
            for tensor, rows in blocks
        ]
        kernel = module.attention_tiles[(length // 128, batch * heads)]
        sizes = {"CAUSAL": is_causal, "HEAD_DIM": dim, "BLOCK_M": 128, "BLOCK_N": keys}
        return lambda: kernel(*descriptors, length, LOG2_E / dim**0.5, **sizes, **options)

    def library() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    def check() -> None:
        close_to(out, library(), 1e-2)

    def best(module: ModuleType, choices: tuple[Options, ...]) -> Run:
        runs = [run_with(module, keys, options) for keys in (128, 64) for options in choices]
        return fastest(_working(runs))

    work = f"attention bfloat16 {shape}{' causal' if is_causal else ''}"
    flops = 4 * batch * heads * length**2 * dim / 1e12 * (0.5 if is_causal else 1)
    yield from _compared(work, best, ("cuDNN", library), check, flops)


def _working(runs: list[Run]) -> list[Run]:
    """Those that fit the machine; whatever else goes wrong breaks the family off."""
    working: list[Run] = []
    for run in runs:
        try:
            run()
        except Exception as error:  # each compiler has a class of its own for what does not fit
            if type(error).__name__ != "OutOfResources":
                raise
            print(f"left out: {str(error).splitlines()[0]}", flush=True)
        else:
            working.append(run)
    return working


def _compared(work, best, library, check, flops: float) -> Iterator[Row]:
    """A row for each schedule beside the library, and the fastest beside Triton."""
    ours: dict[str, Run] = {}
    for name, choices in SCHEDULES.items():
        ours[name] = best(gpu_peers.ours(), choices)
        ours[name]()
        check()
    theirs = best(gpu_peers.theirs(), TRITON)
    peer_name, peer = library
    times = measure(*ours.values(), theirs, peer)
    unit = "TFLOP/s"
    for name, own in zip(ours, times, strict=False):
        yield compared(FAMILY, f"{work}, {name}", own, times[-1], None, flops, unit, peer_name)
    own = min(times[:-2], key=lambda one: one.median)
    yield compared(FAMILY, f"{work}, the fastest", own, times[-2], None, flops, unit)
