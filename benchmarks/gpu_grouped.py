"""Products of a group in one launch, by descriptors and by pointers that lie in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_schedules import working
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
from benchmarks.harness import Row

FAMILY = "gpu grouped"
# Four squares, four slices of rows, and sixteen of different heights: m, n, k of each product.
GROUPS: Mapping[str, Sequence[tuple[int, int, int]]] = {
    "4 of 1024³": ((1024, 1024, 1024),) * 4,
    "4 of 1024x8192x8192": ((1024, 8192, 8192),) * 4,
    "16 of 128 to 2048 rows x 2048²": tuple((128 * (i + 1), 2048, 2048) for i in range(16)),
}
BLOCKS = (
    {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 8},
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8},
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 4},
)
Options = Mapping[str, int]


class Group:
    """The arrays of a group, and what a launch of it is given."""

    def __init__(self, shapes: Sequence[tuple[int, int, int]]) -> None:
        self.a = [_halves(m, k) for m, _, k in shapes]
        self.b = [_halves(n, k) for _, n, k in shapes]
        self.c = [torch.empty(m, n, device="cuda", dtype=torch.float16) for m, n, _ in shapes]
        addresses = [
            torch.tensor([part.data_ptr() for part in parts], device="cuda")
            for parts in (self.a, self.b, self.c)
        ]
        rows = [(k, k, n) for _, n, k in shapes]
        numbers = [torch.tensor(v, device="cuda", dtype=torch.int32) for v in (shapes, rows)]
        self.arguments = (*addresses, *numbers, len(shapes))
        self.tera = sum(2 * m * n * k for m, n, k in shapes) / 1e12

    def run_with(self, kernel, options: Options) -> Run:
        """A launch with a program for each multiprocessor."""
        programs = torch.cuda.get_device_properties("cuda").multi_processor_count
        return lambda: kernel[(programs,)](*self.arguments, PROGRAMS=programs, **options)

    def library(self) -> None:
        """The same, product by product."""
        for a, b, c in zip(self.a, self.b, self.c, strict=True):
            torch.matmul(a, b.T, out=c)

    def check(self) -> None:
        """Hold the results to the library's."""
        for a, b, c in zip(self.a, self.b, self.c, strict=True):
            close_to(c, a @ b.T, 1e-3)


def _halves(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, device="cuda", dtype=torch.float16)


def _memory(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    del alignment, stream
    return torch.empty(size, dtype=torch.int8, device="cuda")


def rows() -> Iterator[Row]:
    """Each group by descriptors and by pointers, beside Triton and one product after another."""
    stages = ({"num_stages": 3}, {"num_stages": 4})
    gpu_peers.theirs().triton.set_allocator(_memory)  # for the descriptors that its programs make
    for name, shapes in GROUPS.items():
        group = Group(shapes)
        for form in ("descriptors", "pointers"):
            kernels = [
                getattr(module, f"grouped_{form}")
                for module in (gpu_peers.ours(), gpu_peers.theirs())
            ]
            tried = [
                [group.run_with(kernel, {**blocks, **more}) for blocks in BLOCKS for more in stages]
                for kernel in kernels
            ]
            if form == "descriptors":
                roles = {"num_consumer_groups": 2}
                tried[0] += [group.run_with(kernels[0], {**b, **roles}) for b in BLOCKS[:2]]
            ours, theirs = (fastest(working(runs)) for runs in tried)
            ours()
            group.check()
            times = measure(ours, theirs, group.library)
            work = f"{name} by {form}"
            yield compared(FAMILY, work, times[0], times[1], 1.0, group.tera, "TFLOP/s")
            beside = f"{work}, beside torch, one by one"
            yield compared(FAMILY, beside, times[0], times[2], None, group.tera, "TFLOP/s", "torch")
