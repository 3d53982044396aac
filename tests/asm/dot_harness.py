"""Compile and call emitted `dot` and packing functions, on this host and for other machines."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np

from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.llvm_builder import ModuleBuilder
from tilewright.codegen.optimize import compile_module, initialize_llvm
from tilewright.targets.cpu.dot.panels import PanelLayout, RowLayout, VectorUnit

NUMPY_DTYPE = {
    **{"f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "f16": np.dtype(np.float16)},
    **{"i8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "i16": np.dtype(np.int16)},
    **{"i32": np.dtype(np.int32), "bf16": np.dtype(ml_dtypes.bfloat16)},
    **{"f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn), "f8E5M2": np.dtype(ml_dtypes.float8_e5m2)},
}


@dataclass(frozen=True)
class Machine:
    """A CPU that code is emitted for: LLVM's name and the features that the emitter sees."""

    label: str
    cpu: str
    unit: VectorUnit
    triple: str | None = None


AVX2 = frozenset({"sse2", "avx", "avx2", "fma", "f16c"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}

MACHINES = (
    Machine("sse2", "x86-64", VectorUnit(frozenset({"sse2"}), 16)),
    Machine("avx2", "haswell", VectorUnit(AVX2, 32)),
    Machine("avx2-vnni", "sierraforest", VectorUnit(AVX2 | {"avxvnni"}, 32)),
    Machine("avx512", "skylake-avx512", VectorUnit(AVX512, 64)),
    Machine("avx512-ymm", "cascadelake", VectorUnit(AVX512 | {"avx512vnni"}, 32)),
    Machine("avx512-bf16", "cooperlake", VectorUnit(AVX512 | {"avx512vnni", "avx512bf16"}, 64)),
)
NEON = Machine(
    "neon",
    "neoverse-n1",
    VectorUnit(frozenset({"neon", "dotprod"}), 16),
    "aarch64-unknown-linux-gnu",
)


def runnable_machines() -> list[Machine]:
    """The machines whose code this host can run."""
    initialize_llvm()
    on = {name for name, is_on in llvm.get_host_cpu_features().items() if is_on}
    return [machine for machine in MACHINES if machine.unit.features <= on]


@dataclass(frozen=True)
class Native:
    """Linked internal functions, each exported through a wrapper of the same arguments."""

    code: LoadedCode
    arguments: dict[str, tuple[str, ...]]

    def call(self, name: str, *values: int) -> None:
        """Call `@name` with addresses and i64 values."""
        types = [
            ctypes.c_int64 if kind == "i64" else ctypes.c_void_p for kind in self.arguments[name]
        ]
        ctypes.CFUNCTYPE(None, *types)(self.code.addresses[_exported(name)])(*values)


def link(module: ModuleBuilder, machine: Machine, functions: dict[str, tuple[str, ...]]) -> Native:
    """Compile `module` for `machine` and link it here; `functions` gives argument types."""
    export(module, functions)
    compiled = compile_module(module.text(), machine.cpu, ())
    return Native(load_object(compiled.object, *map(_exported, functions)), functions)


def assemble(module: ModuleBuilder, machine: Machine, functions: dict[str, tuple[str, ...]]) -> str:
    """The assembly of `module` for `machine`."""
    export(module, functions)
    compiled = compile_module(
        module.text(), machine.cpu, (), machine.triple, emit_object=False, emit_assembly=True
    )
    assert compiled.assembly is not None
    return compiled.assembly


def export(module: ModuleBuilder, functions: dict[str, tuple[str, ...]]) -> None:
    """Wrap internal functions so that they are not removed and can be called."""
    for name, types in functions.items():
        arguments = ", ".join(f"{kind} %x{index}" for index, kind in enumerate(types))
        module.add_function(
            _exported(name),
            f"define void @{_exported(name)}({arguments}) {{\n"
            f"  call void {name}({arguments})\n  ret void\n}}",
        )


def _exported(name: str) -> str:
    return "export." + name.removeprefix("@")


def aligned(shape: tuple[int, ...] | int, dtype: np.dtype, fill: bytes = b"\0") -> np.ndarray:
    """An array at a 64-byte boundary, filled with a byte."""
    num_bytes = int(np.prod(shape)) * dtype.itemsize
    raw = np.frombuffer(bytearray(fill * (num_bytes + 64)), np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + num_bytes].view(dtype).reshape(shape)


def random_tile(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Random values of a dtype; integers cover their whole range."""
    kind = NUMPY_DTYPE[dtype]
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, kind, endpoint=True)
    return rng.standard_normal(shape).astype(kind)


def pack_panels(layout: PanelLayout, b: np.ndarray) -> np.ndarray:
    """The panels of `b: [K, N]` as NumPy makes them: the definition that code is tested by."""
    k, n = b.shape
    panels = np.zeros(layout.size_elems(k, n), b.dtype)
    shape = (layout.num_panels(n), layout.num_groups(k), layout.columns, layout.k_group)
    padded = np.zeros((shape[1] * shape[3], shape[0] * shape[2]), b.dtype)
    padded[:k, :n] = b
    split = padded.reshape(shape[1], shape[3], shape[0], shape[2])
    panels[:] = split.transpose(2, 0, 3, 1).reshape(-1)
    return panels


def pack_rows(layout: RowLayout, a: np.ndarray) -> np.ndarray:
    """The rows of `a: [M, K]` as NumPy makes them, with the bias of `vpdpbusd`."""
    m, k = a.shape
    rows = np.zeros((m, layout.stride_elems(k)), a.dtype)
    rows[:, :k] = a
    return rows ^ rows.dtype.type(-128 if a.dtype == np.int8 else 128) if layout.bias else rows
