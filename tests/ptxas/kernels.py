"""The kernels of the GPU benchmarks compiled for Hopper: PTX, resources, messages."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

import tilewright
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.jit import JITFunction
from tilewright.support.options import option_names
from tilewright.targets.nvidia.assembler import Assembled, assemble_ptx
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.target import load_target

_KERNELS = Path(__file__).parents[2] / "benchmarks" / "gpu_kernels.py"

F32, F16 = np.zeros(256, np.float32), np.zeros(256, np.float16)


def request_of(
    kernel: JITFunction, arguments: Sequence[object], options: Mapping[str, object]
) -> CompileRequest:
    """The compile request of a launch for sm_90a."""
    call = kernel.specialize_call(tuple(arguments), dict(options))
    fields = {name: getattr(call.options, name) for name in option_names()}
    source, machine = call.source, named_machine("sm_90a")
    return CompileRequest(
        source.functions, source.kernel, call.specialization, fields, "nvidia", machine
    )


def ptx_of(request: CompileRequest) -> str:
    """The PTX of a request."""
    target = load_target("nvidia")
    scheduled = to_schedule(request, target, to_tiles(request, target, None), None)
    text = target.emit(scheduled, request.machine, request.compile_options)
    return to_ptx(text, request.machine)


@functools.cache
def benchmark_kernels() -> ModuleType:
    """`benchmarks/gpu_kernels.py` with Tilewright under the name that it imports."""
    stand_in = ModuleType("triton")
    vars(stand_in).update(jit=tilewright.jit, language=tilewright.language)
    names = {"triton": stand_in, "triton.language": tilewright.language}
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        spec = importlib.util.spec_from_file_location("tests.ptxas.gpu_kernels", _KERNELS)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        for name, module_before in before.items():
            if module_before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module_before


# Kernel, arguments, and options of the benchmarks.
LAUNCHES: dict[str, tuple[str, tuple[object, ...], dict[str, object]]] = {
    "add": ("add", (F32, F32, F32, 1 << 20), {"BLOCK": 1024}),
    "softmax": ("softmax", (F32, F32, 4096, 4096), {"BLOCK": 4096, "num_warps": 8}),
    "layer_norm": (
        "layer_norm",
        (F16, F16, F16, F16, F32, F32, 8192, 8192, 1e-5),
        {"BLOCK": 8192, "num_warps": 8},
    ),
    "layer_norm_backward": (
        "layer_norm_backward",
        (F16, F16, F32, F32, F16, F16, F32, F32, 4096, 4096, 8192),
        {"BLOCK": 4096, "num_warps": 8},
    ),
    "matmul": (
        "matmul",
        (F16, F16, F16, 8192, 8192, 8192, 8192, 8192, 8192),
        {
            "BLOCK_M": 128,
            "BLOCK_N": 128,
            "BLOCK_K": 64,
            "GROUP_M": 8,
            "num_warps": 4,
            "num_stages": 1,
        },
    ),
    "attention": (
        "attention",
        (F16, F16, F16, F16, 4096, 0.1),
        {"CAUSAL": False, "HEAD_DIM": 128, "BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4},
    ),
    "attention_causal": (
        "attention",
        (F16, F16, F16, F16, 4096, 0.1),
        {
            "CAUSAL": True,
            "HEAD_DIM": 128,
            "BLOCK_M": 128,
            "BLOCK_N": 64,
            "num_warps": 8,
            "num_consumer_groups": 0,
        },
    ),
    "attention_unasked": (
        "attention",
        (F16, F16, F16, F16, 4096, 0.1),
        {"CAUSAL": True, "HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8},
    ),
}


@functools.cache
def compiled(name: str) -> Assembled:
    """A kernel of `LAUNCHES`, assembled."""
    return assemble_ptx(launch_ptx(name), "sm_90a")


@functools.cache
def launch_ptx(name: str) -> str:
    """The PTX of a kernel of `LAUNCHES`."""
    kernel, arguments, options = LAUNCHES[name]
    return ptx_of(request_of(getattr(benchmark_kernels(), kernel), arguments, options))
