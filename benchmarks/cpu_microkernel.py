"""The CPU's `dot`: fractions of the measured multiply peak, packing costs, whole matmuls.

Run with `python benchmarks/cpu_microkernel.py`; with torch installed, torch is compared too.
Every figure is the median over pairs of a sample and the peak loop run right before and
after it, so that a clock that moves cancels out. One thread, timed by its own CPU clock.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import importlib
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.multiply_peak import NUM_CHAINS, emit_peak_loop, operations_per_turn
from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.optimize import compile_module
from tilewright.targets.cpu.dot.microkernel import emit_dot
from tilewright.targets.cpu.dot.packing import emit_pack
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES, VectorUnit, choose_multiply
from tilewright.targets.cpu.dot.spec import DotSpec, SourceTile
from tilewright.targets.cpu.dot.vectors import counted_loop, element_address, scaled
from tilewright.targets.cpu.host import host_machine

HOST = host_machine()
FEATURES = HOST.enabled_features
UNIT = VectorUnit(FEATURES, HOST.vector_bytes)
BYTES = {**ELEMENT_BYTES, "f16": 2}
TILES = ((64, 64, 32), (64, 64, 64), (128, 128, 32), (128, 128, 64), (128, 128, 128))
PROGRAM_TILES = (
    *((64, 64, 64), (128, 128, 64), (128, 128, 128), (256, 256, 128)),
    *((512, 128, 128), (512, 256, 128), (512, 256, 256)),
)


@dataclass(frozen=True)
class Entry:
    """An exported function of `(ptr, …, i64 repeats)` and the code that it lives in."""

    code: LoadedCode
    seconds_to_compile: float

    def call(self, *arguments: int) -> None:
        """Run the entry with addresses and a last repeat count."""
        types = [ctypes.c_void_p] * (len(arguments) - 1) + [ctypes.c_int64]
        ctypes.CFUNCTYPE(None, *types)(self.code.addresses["entry"])(*arguments)


def build(num_pointers: int, body: Callable[[FunctionBuilder], None]) -> Entry:
    """Compile an entry that repeats `body`, which calls internal functions on `%p0…`."""
    started = time.process_time()
    module = ModuleBuilder()
    pointers = ", ".join(f"ptr %p{index}" for index in range(num_pointers))
    fn = FunctionBuilder(module, f"define void @entry({pointers}, i64 %repeats)")
    fn.branch("again")
    fn.place("again")
    fn.emit("%turn = phi i64 [ 0, %entry ], [ %turn.next, %turn.end ]")
    body(fn)
    fn.branch("turn.end")
    fn.place("turn.end")
    fn.emit("%turn.next = add i64 %turn, 1")
    fn.branch_if(fn.value("icmp ult i64 %turn.next, %repeats"), "again", "end")
    fn.place("end")
    fn.emit("ret void")
    module.add_function("entry", fn.text())
    compiled = compile_module(module.text(), HOST.arch, HOST.features)
    seconds = time.process_time() - started
    return Entry(load_object(compiled.object, "entry"), seconds)


def aligned(num_bytes: int) -> np.ndarray:
    """Zeroed bytes that start at a page."""
    raw = np.zeros(num_bytes + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    return raw[start : start + num_bytes]


class Peak:
    """The rate of the multiply loop, in operations per second, of an instruction."""

    def __init__(self, dtype: str, bf16_dot: bool | None = None) -> None:
        multiply = choose_multiply(dtype, dtype, UNIT, bf16_dot=bf16_dot)

        def body(fn: FunctionBuilder) -> None:
            loop = emit_peak_loop(fn.module, multiply, UNIT)
            fn.emit(f"call void {loop}(i64 1, ptr %p0)")

        self._entry = build(1, body)
        self._operations = operations_per_turn(multiply, UNIT)
        self._data = aligned(64 * NUM_CHAINS)

    def rate(self, turns: int = 48) -> float:
        """One sample of about 100 µs.

        The first microseconds of 512-bit work run slowly while the core powers its upper
        lanes, so a shorter sample shows a peak that kernels surpass.
        """
        self._entry.call(self._data.ctypes.data, turns // 4)
        started = time.thread_time()
        self._entry.call(self._data.ctypes.data, turns)
        return turns * self._operations / (time.thread_time() - started)


def fractions(
    works: dict[str, Callable[[], None]], operations: float, peak: Peak, rounds: int
) -> dict[str, float]:
    """The median fraction of the peak that each work reaches, all of them in every round."""
    samples: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(rounds):
        for name, work in works.items():
            before = peak.rate()
            started = time.thread_time()
            work()
            rate = operations / (time.thread_time() - started)
            samples[name].append(2 * rate / (before + peak.rate()))
    return {name: statistics.median(values) for name, values in samples.items()}


def dot_spec(tile: tuple[int, int, int], dtype: str, **options: bool) -> DotSpec:
    """The `dot` of a tile on this host."""
    return DotSpec(*tile, dtype, dtype, FEATURES, HOST.vector_bytes, **options)


def tile_fraction(spec: DotSpec, peak: Peak, pairs: int) -> float:
    """The microkernel alone, operands packed and in cache."""
    entry = build(3, lambda fn: fn.emit(f"call void {emit_dot(fn.module, spec)}({_three()})"))
    buffers = [
        aligned(spec.a_layout.size_bytes(spec.m, spec.k)),
        aligned(spec.b_layout.size_bytes(spec.k, spec.n)),
        aligned(spec.m * spec.n * ELEMENT_BYTES[spec.acc_dtype]),
    ]
    operations = 2 * spec.m * spec.n * spec.k
    repeats = max(1, int(5e7 / operations))
    addresses = [buffer.ctypes.data for buffer in buffers]
    work = functools.partial(entry.call, *addresses, repeats)
    return fractions({"dot": work}, repeats * operations, peak, pairs)["dot"]


def _three() -> str:
    return "ptr %p0, ptr %p1, ptr %p2"


def pack_cost(spec: DotSpec, role: str, transposed: bool) -> float:
    """Nanoseconds to pack one operand of a tile out of a matrix of 1024 columns."""
    pack = spec.pack_spec("a" if role == "a" else "b", transposed)

    def body(fn: FunctionBuilder) -> None:
        fn.emit(f"call void {emit_pack(fn.module, pack)}(ptr %p0, i64 1024, ptr %p1)")

    entry = build(2, body)
    source, packed = aligned(1024 * 1024 * 8), aligned(1 << 20)
    samples: list[float] = []
    for _ in range(9):
        started = time.thread_time()
        entry.call(source.ctypes.data, packed.ctypes.data, 20)
        samples.append((time.thread_time() - started) / 20)
    return statistics.median(samples) * 1e9


def matmul_program(size: int, tile: tuple[int, int, int], dtype: str) -> Entry:
    """`C[size, size] = A · B`: for every tile of C, pack and multiply along k, then store."""
    block_m, block_n, block_k = tile
    element = BYTES[dtype]
    following = dot_spec(tile, dtype)
    following = replace(
        following,
        a_in_place=following.can_read_a_in_place,
        next_b=SourceTile(block_k, element),
    )
    first = replace(following, zero_init=True)
    acc_bytes = ELEMENT_BYTES[first.acc_dtype]
    a_bytes = -(-first.a_layout.size_bytes(block_m, block_k) // 64) * 64
    b_bytes = first.b_layout.size_bytes(block_k, block_n)

    def step(fn: FunctionBuilder, m: str, n: str, k: str, spec: DotSpec) -> None:
        a = element_address(fn, "i8", "%p0", _matrix_offset(fn, m, k, size, element))
        b = element_address(fn, "i8", "%p1", _matrix_offset(fn, k, n, size, element))
        kept_b = element_address(fn, "i8", "%p3", a_bytes)
        acc = element_address(fn, "i8", "%p3", a_bytes + b_bytes)
        pack_b = emit_pack(fn.module, spec.pack_spec("b"))
        fn.emit(f"call void {pack_b}(ptr {b}, i64 {size}, ptr {kept_b})")
        kept_a, stride = (a, f", i64 {size}") if spec.a_in_place else ("%p3", "")
        if not spec.a_in_place:
            pack_a = emit_pack(fn.module, spec.pack_spec("a"))
            fn.emit(f"call void {pack_a}(ptr {a}, i64 {size}, ptr {kept_a})")
        next_b = element_address(fn, "i8", b, block_k * size * element)
        fetch = f"{stride}, ptr {next_b}, i64 {size}"
        dot = emit_dot(fn.module, spec)
        fn.emit(f"call void {dot}(ptr {kept_a}, ptr {kept_b}, ptr {acc}{fetch})")

    def store(fn: FunctionBuilder, m: str, n: str) -> None:
        target = element_address(fn, "i8", "%p2", _matrix_offset(fn, m, n, size, acc_bytes))
        acc = element_address(fn, "i8", "%p3", a_bytes + b_bytes)

        def row(index: str) -> None:
            to = element_address(fn, "i8", target, scaled(fn, index, size * acc_bytes))
            source = element_address(fn, "i8", acc, scaled(fn, index, block_n * acc_bytes))
            callee = fn.module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr, ptr, i64, i1")
            num_bytes = block_n * acc_bytes
            fn.emit(f"call void {callee}(ptr {to}, ptr {source}, i64 {num_bytes}, i1 false)")

        counted_loop(fn, block_m, row)

    def program(fn: FunctionBuilder, m: str, n: str) -> None:
        step(fn, m, n, "0", first)
        counted_loop(
            fn,
            size // block_k - 1,
            lambda index: step(fn, m, n, scaled(fn, index, block_k, block_k), following),
        )
        store(fn, m, n)

    def grid(fn: FunctionBuilder) -> None:
        counted_loop(
            fn,
            size // block_m,
            lambda row: counted_loop(
                fn,
                size // block_n,
                lambda column: program(fn, scaled(fn, row, block_m), scaled(fn, column, block_n)),
            ),
        )

    return build(4, grid)


def _matrix_offset(fn: FunctionBuilder, row: str, column: str, size: int, element: int) -> str:
    return scaled(fn, column, element, scaled(fn, row, size * element))


def to_bf16_bits(values: np.ndarray) -> np.ndarray:
    """f32 values, cut to bf16, as 16-bit integers."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def report_tiles(pairs: int) -> None:
    """Print the microkernel's fraction of the peak in cache, by dtype and tile."""
    dtypes = ("f32", "f64", "bf16", "f16", "i8")
    peaks = {dtype: Peak(dtype) for dtype in dtypes}
    for dtype, peak in peaks.items():
        print(f"peak of {dtype} operands: {max(peak.rate() for _ in range(9)) / 1e9:.0f} Gop/s")
    dot_peak = Peak("bf16", bf16_dot=True)
    print(f"peak of vdpbf16ps, if any: {max(dot_peak.rate() for _ in range(9)) / 1e9:.0f} Gop/s")
    print("fraction of the peak in cache      " + "  ".join(f"{dtype:>5}" for dtype in dtypes))
    small = ((1, 256, 64), (4, 256, 64), (16, 16, 64), (64, 16, 64), (64, 32, 64))
    for tile in (*small, *TILES, *((128, 256, 128), (256, 256, 128), (128, 176, 64))):
        row = [tile_fraction(dot_spec(tile, dtype), peaks[dtype], pairs) for dtype in dtypes]
        print(f"{tile!s:>34}  " + "  ".join(f"{value:5.2f}" for value in row), flush=True)


def report_packing() -> None:
    """Print what packing costs beside the multiplication of a 128x128x64 tile."""
    for dtype in ("f32", "bf16", "i8"):
        spec = dot_spec((128, 128, 64), dtype)
        peak = max(Peak(dtype).rate() for _ in range(5))
        ideal = 2 * spec.m * spec.n * spec.k / peak * 1e9
        costs = {
            f"{role}{'.T' if transposed else ''}": pack_cost(spec, role, transposed)
            for role in ("a", "b")
            for transposed in (False, True)
        }
        text = ", ".join(f"{name} {cost:.0f}" for name, cost in costs.items())
        print(f"pack 128x64 {dtype} (ns): {text}; the dot at peak {ideal:.0f}", flush=True)


def report_programs(sizes: list[int], pairs: int) -> None:
    """Print whole matmuls beside NumPy and torch."""
    rng = np.random.default_rng(0)
    for dtype, size in [(dtype, size) for dtype in ("f32", "bf16") for size in sizes]:
        a, b = rng.standard_normal((2, size, size), np.float32)
        if dtype == "bf16":
            a, b = (as_f32(to_bf16_bits(each)) for each in (a, b))
        out = np.empty((size, size), np.float32)
        works = peers(dtype, a, b, out)
        for tile in PROGRAM_TILES:
            works[f"tile {tile}"] = program_work(size, tile, dtype, (a, b, out))
        reached = fractions(works, 2.0 * size**3, Peak("f32"), pairs)
        for name, value in reached.items():
            beside = f"{value / reached['torch']:5.2f} x torch" if "torch" in reached else ""
            print(f"{size}³ {dtype:>4} {name:>20}: {value:4.2f} of peak {beside}", flush=True)


def program_work(
    size: int, tile: tuple[int, int, int], dtype: str, arrays: tuple[np.ndarray, ...]
) -> Callable[[], None]:
    """A call of the emitted matmul on f32 arrays, checked once against NumPy."""
    a, b, out = arrays
    entry = matmul_program(size, tile, dtype)
    sources = (a, b) if dtype == "f32" else (to_bf16_bits(a), to_bf16_bits(b))
    buffers = (*sources, out, aligned(4 << 20))

    def work() -> None:
        entry.call(*(buffer.ctypes.data for buffer in buffers), 1)

    work()
    want = a @ b
    assert np.abs(out - want).max() < 1e-5 * np.abs(want).max(), tile
    return work


def as_f32(bits: np.ndarray) -> np.ndarray:
    """bf16 bits as f32 values."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def peers(
    dtype: str, a: np.ndarray, b: np.ndarray, out: np.ndarray
) -> dict[str, Callable[[], None]]:
    """The same product in NumPy and, where it is installed, torch."""
    work: dict[str, Callable[[], None]] = {}
    if dtype == "f32":
        work["numpy"] = lambda: (np.matmul(a, b, out=out), None)[1]
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        return work
    torch.set_num_threads(1)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    x, y = (torch.from_numpy(each).to(kind) for each in (a, b))
    z = torch.empty(a.shape, dtype=kind)
    work["torch"] = lambda: (torch.mm(x, y, out=z), None)[1]
    return work


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[512, 1024])
    parser.add_argument("--pairs", type=int, default=11)
    options = parser.parse_args()
    print(f"{HOST.arch}, {HOST.vector_bytes}-byte vectors, one thread")
    report_tiles(options.pairs)
    report_packing()
    report_programs(options.sizes, options.pairs)


if __name__ == "__main__":
    if os.environ.setdefault("OPENBLAS_NUM_THREADS", "1") != "1":
        print("set OPENBLAS_NUM_THREADS=1 to compare one thread with one thread")
    main()
