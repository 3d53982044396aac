"""Plain kernels of descriptors under each schedule: none, pipelined, in roles; beside the peers.

The peers are Triton with the fastest of its stages, cuBLAS for products and cuDNN for attention.
Sizes that no block divides are among the products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import Any, Protocol

from torch.nn.attention import SDPBackend, sdpa_kernel

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_matrix import LOG2_E
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
from benchmarks.harness import Row

FAMILY = "gpu schedules"
PRODUCTS = ((8192, 8192, 8192), (4096, 4096, 4096), (8192, 8192, 1024), (4000, 5000, 3000))
BLOCKS = ((128, 256, 64), (256, 128, 64), (128, 128, 64))
ATTENTIONS = ((8, 16, 8192, 128), (4, 32, 4096, 128), (4, 32, 4096, 64), (4, 16, 4096, 256))
LONG_CAUSAL = (4, 32, 16384, 128)
Options = Mapping[str, Any]
Pick = Callable[[Sequence[Run]], Run]
IN_ROLES = {"num_warps": 4, "num_consumer_groups": 2}
IN_CLUSTERS = {**IN_ROLES, "cluster_dims": (2, 1, 1)}
TALL = {"GROUP_M": 16}
"""Tiles of 128 rows by 256 columns that run at once make a square of C so: less of A and B is
fetched. Measured on an H100, 2026-11-27, 8192³ bf16 hot, of cuBLAS: 1.02-1.03, 8 rows 1.00."""
SCHEDULES: Mapping[str, tuple[Options, ...]] = {
    "num_stages=1": ({"num_warps": 8, "num_stages": 1},),
    "pipelined": tuple({"num_warps": 8, "num_stages": stages} for stages in (2, 3, 4)),
    "in roles": (IN_ROLES, IN_CLUSTERS, {**IN_CLUSTERS, **TALL}),
}
STAGES = tuple({"num_warps": 8, "num_stages": stages} for stages in (2, 3, 4))
TRITON = (*STAGES, *({**options, **TALL} for options in STAGES[1:]))
IN_TURN = {**IN_ROLES, "GROUP": 8}
"""Heads at a time. Measured on an H200, 2026-11-23, (4, 32, 4096, 128) causal, us of 8 launches
back to back: 4, 8, 16 and 32 heads 1028, 980, 997 and 1019, a program for each block 1088."""
# Programs of four warps take 64 queries; groups of warps 64 each.
SMALL, ONE_PROGRAM = {"num_warps": 4, "BLOCK_M": 64}, {"num_consumer_groups": 0}
ATTENTION_SCHEDULES: Mapping[str, tuple[Options, ...]] = {
    "nothing said": ({"num_warps": 8}, SMALL),
    "num_stages=1": tuple(
        {**options, **ONE_PROGRAM, "num_stages": 1} for options in ({"num_warps": 8}, SMALL)
    ),
    "pipelined": tuple(
        {**options, **ONE_PROGRAM, "num_stages": stages}
        for options in ({"num_warps": 8}, SMALL)
        for stages in (2, 3, 4)
    ),
    "in roles": (
        *({"num_warps": 4, "num_consumer_groups": groups} for groups in (2, 3)),
        IN_TURN,
    ),
}
ATTENTION_TRITON = (*STAGES, *({**SMALL, "num_stages": stages} for stages in (2, 3, 4)))


@dataclass(frozen=True)
class Operands:
    """What a product is made of; B is [N, K] where it is transposed.

    Where it is scaled, each row and each column of the product is multiplied by its own number.
    """

    name: str
    dtype: torch.dtype
    is_transposed: bool = False
    is_scaled: bool = False

    def tensors(self, m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """A and B at random, and C."""
        shapes = (m, k), ((n, k) if self.is_transposed else (k, n))
        a, b = (torch.randn(shape, device="cuda").to(self.dtype) for shape in shapes)
        out = self.dtype if self.dtype.itemsize > 1 else torch.bfloat16
        return a, b, torch.empty(m, n, device="cuda", dtype=out)

    def scales(self, m: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What rows [M, 1] and columns [1, N] are multiplied by; one 1 for all where unscaled."""
        if not self.is_scaled:
            return (torch.ones((), device="cuda"),) * 2
        return torch.rand(m, 1, device="cuda") + 0.5, torch.rand(1, n, device="cuda") + 0.5

    def product(
        self, a: torch.Tensor, b: torch.Tensor, scales: tuple[torch.Tensor, ...], out: torch.Tensor
    ) -> torch.Tensor:
        """The library's product, into `out`."""
        right = b.T if self.is_transposed else b
        if self.dtype.itemsize > 1:
            return torch.matmul(a, right, out=out)
        scale_a, scale_b = scales
        said = {"scale_a": scale_a, "scale_b": scale_b, "out_dtype": out.dtype}
        return torch._scaled_mm(a, right, **said, use_fast_accum=True, out=out)


BFLOAT16 = Operands("bfloat16", torch.bfloat16)
BFLOAT16_TRANSPOSED = Operands("bfloat16 with B transposed", torch.bfloat16, True)
FLOAT16 = Operands("float16", torch.float16)
FLOAT8 = Operands("float8e4nv with B transposed", torch.float8_e4m3fn, True)
FLOAT8_SCALED = Operands("float8e4nv scaled by rows", torch.float8_e4m3fn, True, True)


class Best(Protocol):
    """How the fastest of several launches is found."""

    def __call__(
        self, module: ModuleType, choices: tuple[Options, ...], pick: Pick = fastest, /
    ) -> Run:
        """Compile and try a module's kernels with each of the choices."""


@dataclass(frozen=True)
class Work:
    """Something to do in several ways: ours, Triton's and a library's.

    `best(module, choices)` is the fastest launch of a module's kernels with one of the options, by
    single calls with a cold cache or by what a third argument says.
    """

    name: str
    tera_flops: float
    best: Best
    library_name: str
    library: Run
    check: Callable[[], None]
    schedules: Mapping[str, tuple[Options, ...]]
    of_triton: tuple[Options, ...]


def rows() -> Iterator[Row]:
    """Products, then attention with and without a causal mask."""
    for size in PRODUCTS:
        yield from compare(product_work(size, BFLOAT16))
    for operands in (BFLOAT16_TRANSPOSED, FLOAT16, FLOAT8):
        for size in PRODUCTS[1:3]:
            yield from compare(product_work(size, operands))
    for shape in ATTENTIONS:
        for is_causal in (False, True):
            yield from compare(attention_work(shape, is_causal))
    yield from compare(attention_work(LONG_CAUSAL, True))


def product_work(size: tuple[int, int, int], operands: Operands) -> Work:
    """A product [M, K] x [K, N]; each schedule with the fastest of its blocks."""
    m, n, k = size
    a, b, c = operands.tensors(m, n, k)
    scales = operands.scales(m, n)
    num_programs = torch.cuda.get_device_properties(0).multi_processor_count

    def run_with(module: ModuleType, blocks: tuple[int, int, int], options: Options) -> Run:
        rows, columns, depth = blocks
        depth = 2 * depth // operands.dtype.itemsize
        of_b = [columns, depth] if operands.is_transposed else [depth, columns]
        pairs = ((a, [rows, depth]), (b, of_b), (c, [rows, columns]))
        descriptors = [module.TensorDescriptor.from_tensor(*pair) for pair in pairs]
        sizes = {"BLOCK_M": rows, "BLOCK_N": columns, "BLOCK_K": depth}
        sizes |= {"GROUP_M": 8, "B_TRANSPOSED": operands.is_transposed}
        sizes |= {"SCALED": operands.is_scaled}
        kernel = module.matmul_tiles[(num_programs,)]
        said = {**sizes, **options}
        return lambda: kernel(*descriptors, *scales, m, n, k, **said)

    def check() -> None:
        close_to(c, operands.product(a, b, scales, torch.empty_like(c)), 4e-3)

    def best(module: ModuleType, choices: tuple[Options, ...], pick: Pick = fastest, /) -> Run:
        runs = [run_with(module, *choice) for choice in product(BLOCKS, choices)]
        return pick(working(runs))

    out = torch.empty_like(c)
    peer = "torch" if operands.is_scaled else "cuBLAS"
    library = (peer, lambda: operands.product(a, b, scales, out))
    name = f"matmul {operands.name} {m}x{n}x{k}"
    return Work(name, 2 * m * n * k / 1e12, best, *library, check, SCHEDULES, TRITON)


def attention_work(shape: tuple[int, int, int, int], is_causal: bool) -> Work:
    """Attention [batch, heads, length, dim], each schedule with the fastest of its blocks.

    Blocks have 64 to 192 queries and 128 or 64 keys. 192 queries are shared by three groups of
    warps, and such blocks need not divide the length. Where a mask makes blocks unequal, programs
    that take one after the other are tried as well.
    """
    batch, heads, length, dim = shape
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out = torch.empty_like(q)
    num_programs = torch.cuda.get_device_properties(0).multi_processor_count

    def run_with(module: ModuleType, keys: int, options: Options) -> Run:
        groups = options.get("num_consumer_groups", 0)
        rows, is_ragged = (192, True) if groups == 3 else (options.get("BLOCK_M", 128), False)
        blocks = ((q, rows), (k, keys), (v, keys), (out, rows))
        arguments = [
            module.TensorDescriptor.from_tensor(tensor.view(-1, dim), [extent, dim])
            for tensor, extent in blocks
        ]
        if is_ragged:
            arguments[-1] = out
        if "GROUP" in options:
            in_turn = module.attention_in_turn[(num_programs,)]
            own = {"HEAD_DIM": dim, "BLOCK_M": rows, "BLOCK_N": keys, **options}
            return lambda: in_turn(*arguments, length, batch * heads, LOG2_E / dim**0.5, **own)
        kernel = module.attention_rows if is_ragged else module.attention_tiles
        launch = kernel[(-(-length // rows), batch * heads)]
        sizes = {"CAUSAL": is_causal, "HEAD_DIM": dim, "BLOCK_M": rows, "BLOCK_N": keys}
        said = {**options, **sizes}
        return lambda: launch(*arguments, length, LOG2_E / dim**0.5, **said)

    def library() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    def check() -> None:
        close_to(out, library(), 1e-2)

    def best(module: ModuleType, choices: tuple[Options, ...], pick: Pick = fastest, /) -> Run:
        runs = [
            run_with(module, keys, options)
            for keys in (128, 64)
            for options in choices
            if keys <= options.get("BLOCK_M", keys) and (is_causal or "GROUP" not in options)
        ]
        return pick(working(runs))

    name = f"attention bfloat16 {shape}{' causal' if is_causal else ''}"
    flops = 4 * batch * heads * length**2 * dim / 1e12 * (0.5 if is_causal else 1)
    peers = ATTENTION_SCHEDULES, ATTENTION_TRITON
    return Work(name, flops, best, "cuDNN", library, check, *peers)


def working(runs: list[Run]) -> list[Run]:
    """Those that fit the machine; whatever else goes wrong breaks the family off."""
    working: list[Run] = []
    for run in runs:
        try:
            run()
        except Exception as error:  # each compiler has a class of its own for what does not fit
            if "OutOfResources" not in {each.__name__ for each in type(error).__mro__}:
                raise
            print(f"left out: {str(error).splitlines()[0]}", flush=True)
        else:
            working.append(run)
    return working


def compare(work: Work, family: str = FAMILY) -> Iterator[Row]:
    """A row for each schedule beside the library, and the fastest beside Triton."""
    ours: dict[str, Run] = {}
    for name, choices in work.schedules.items():
        ours[name] = work.best(gpu_peers.ours(), choices)
        ours[name]()
        work.check()
    theirs = work.best(gpu_peers.theirs(), work.of_triton)
    times = measure(*ours.values(), theirs, work.library)
    amount = work.tera_flops, "TFLOP/s"
    for name, own in zip(ours, times, strict=False):
        done = f"{work.name}, {name}"
        yield compared(family, done, own, times[-1], None, *amount, work.library_name)
    own = min(times[:-2], key=lambda one: one.median)
    yield compared(family, f"{work.name}, the fastest", own, times[-2], None, *amount)
