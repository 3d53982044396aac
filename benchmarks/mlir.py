"""Kernels through stock MLIR beside our own CPU target: the same source, the same pool of threads.

The schedule `cpu` is a script of the transform dialect, which mlir-opt runs. Without mlir-opt and
mlir-translate that row has no value. To write a kernel in core dialects needs neither.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.harness import Row, measure_pairs, show_seconds
from benchmarks.matrix import Blocks, blocks_for, launch
from examples.matmul import matmul_kernel
from examples.vector_add import add_kernel
from tilewright.compiler.build import make_request
from tilewright.compiler.compile import compile_request
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.devices import DevicePlacement
from tilewright.jit import JITFunction
from tilewright.runtime.fingerprint import compiler_fingerprint
from tilewright.support.errors import UnsupportedError
from tilewright.targets.mlir.tools import find_tools

FAMILY = "mlir"
THREADS = (1, 2)
SIZE = 512
PRODUCT_BAR = 0.3
"""Of the speed of our CPU target."""
TEXT_BAR = 0.5
"""Of the rate at which our CPU target compiles: at most twice its time."""
# Measured: 512³ in f32, two threads of an EPYC with AVX-512, 2026-11-22: 64×64×32, 128×64×64,
# 128×128×64 and 64×128×128 reach 328, 364, 182 and 344 GF/s.
MLIR_BLOCKS = Blocks(128, 64, 64, 1)


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    if threads == 1:
        yield from (text_row(name, *requests) for name, requests in compiled().items())
    work = f"matmul f32 {SIZE}³ by stock MLIR and its schedule beside our CPU target"
    try:
        find_tools()
    except UnsupportedError as error:
        yield Row(FAMILY, work, threads, None, bar=PRODUCT_BAR, note=error.summary)
        return
    yield product_row(work, threads)


def product_row(work: str, threads: int) -> Row:
    """Each way with the tiles that are its best."""
    os.environ["TILEWRIGHT_MLIR_SCHEDULE"] = "cpu"
    shape, rng = (SIZE,) * 3, np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    got, own = np.empty_like(a), np.empty_like(a)
    by_mlir = _on("mlir", launch(a, b, got, shape, MLIR_BLOCKS))
    ours = _on("cpu", launch(a, b, own, shape, blocks_for(SIZE, threads)))
    for run, result in ((by_mlir, got), (ours, own)):
        run()
        np.testing.assert_allclose(result, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)
    return _ratio_row(work, threads, by_mlir, ours, PRODUCT_BAR)


def _on(target: str, run: Callable[[], object]) -> Callable[[], object]:
    """A call whose kernels run on a target."""

    def there() -> None:
        os.environ["TILEWRIGHT_TARGET"] = target
        run()

    return there


def _ratio_row(
    work: str, threads: int, ours: Callable[[], object], peer: Callable[[], object], bar: float
) -> Row:
    pairs = measure_pairs(ours, peer)
    return Row(
        *(FAMILY, work, threads, pairs.ratio),
        bar=bar,
        ours=show_seconds(pairs.ours_seconds),
        peer=f"CPU target {show_seconds(pairs.peer_seconds)}",
        note=pairs.note,
    )


def compiled() -> dict[str, tuple[CompileRequest, CompileRequest]]:
    """The kernels of which the compile is measured, for the two targets."""
    x = np.ones(1 << 12, np.float32)
    a = np.ones((SIZE, SIZE), np.float32)
    strides = (SIZE, 1) * 3
    tiles = {"ACTIVATION": "", "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 1}
    return {
        "vector add": requests_of(add_kernel, x, x, x, x.size, BLOCK=1024),
        "matmul": requests_of(matmul_kernel, a, a, a, *(SIZE,) * 3, *strides, **tiles),
    }


def requests_of(
    kernel: JITFunction, *arguments: object, **constants: object
) -> tuple[CompileRequest, CompileRequest]:
    """A call to be compiled for MLIR, and for the CPU."""
    call = kernel.specialize_call(arguments, constants)
    mlir, cpu = (
        make_request(call.source, call.specialization, call.options, DevicePlacement(target))
        for target in ("mlir", "cpu")
    )
    return mlir, cpu


def text_row(name: str, mlir: CompileRequest, cpu: CompileRequest) -> Row:
    """A kernel's text in core dialects beside its machine code by the CPU target."""
    work = f"compile in a warm process, {name}: text in core dialects beside the CPU target"
    return _ratio_row(work, 1, lambda: _compile(mlir), lambda: _compile(cpu), TEXT_BAR)


def _compile(request: CompileRequest) -> object:
    return compile_request(request, request.cache_key(compiler_fingerprint()))
