"""`python -m triton.tools.compile`: a kernel as C source with its cubin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.alias import run_script

pytestmark = pytest.mark.ptxas

KERNEL = """
import sys
import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)

if __name__ == "__main__":
    from triton.tools.compile import main
    main([__file__, "-n", "add_kernel", "-s", sys.argv[1] if len(sys.argv) > 1 else
          "*fp32:16, *fp32:16, i32, 1024", "-g", "(n + 1023) / 1024", "-o", "out/add"])
"""


def test_a_kernel_becomes_c_source_that_loads_and_launches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    result = run_script(tmp_path / "kernel.py", KERNEL, {})
    header, source = map(Path, result.stdout.split())
    text = source.read_text(encoding="utf-8")
    assert "0x7f, 0x45, 0x4c, 0x46" in text, "the image is an ELF file"
    assert "void *arguments[] = {&x_ptr, &out_ptr, &n, NULL};" in text
    assert "cuLaunchKernel(function, x, y, z, 128, 1, 1, 0," in text
    assert f'#include "{header.name}"' in text
    assert "CUstream stream, CUdeviceptr x_ptr, CUdeviceptr out_ptr, int32_t n" in (
        header.read_text(encoding="utf-8")
    )


COMPILE = """
import os, sys
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import _base32

@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)

signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
source = triton.compiler.ASTSource(add_kernel, signature, {"BLOCK": 1024}, {(0,): []})
kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
path = os.path.join(os.environ["TRITON_CACHE_DIR"], _base32(kernel.hash), "add_kernel.cubin")
assert open(path, "rb").read() == kernel.asm["cubin"]
assert kernel.metadata.num_warps == 8 and not hasattr(kernel.metadata, "global_scratch_size")
assert ".target sm_90a" in kernel.asm["ptx"]
print(kernel.metadata.target.backend, kernel.n_regs > 0, kernel.n_spills)
"""


def test_a_kernel_compiles_for_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    cache = tmp_path / "files"
    result = run_script(tmp_path / "kernel.py", COMPILE, {"TRITON_CACHE_DIR": str(cache)})
    assert result.stdout.split() == ["cuda", "True", "0"], result.stderr


DESCRIBED = """
import os
import triton
import triton.language as tl
from pathlib import Path
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import _base32
from triton.tools.compile import make_variant, source_text

@triton.jit
def copy_kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [rows, 64], [64, 1], [BLOCK, 64])
    out = tl.make_tensor_descriptor(out_ptr, [rows, 64], [64, 1], [BLOCK, 64])
    row = tl.program_id(0) * BLOCK
    out.store([row, 0], x.load([row, 0]))

target = GPUTarget("cuda", 90, 32)
signature = {"x_ptr": "*fp16", "out_ptr": "*fp16", "rows": "i32", "BLOCK": "constexpr"}
facts = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
source = triton.compiler.ASTSource(copy_kernel, signature, {"BLOCK": 64}, facts)
kernel = triton.compile(source, target=target)
assert kernel.artifact.metadata["tensor_maps"]
path = Path(os.environ["TRITON_CACHE_DIR"], _base32(kernel.hash), "copy_kernel.cubin")
variant = make_variant(copy_kernel, "*fp16:16,*fp16:16,i32,64", "rows", target, {}, "copy")
assert "&x_ptr, &out_ptr, &rows, NULL" in source_text(variant, "copy.h")
print(path.exists(), variant.kernel.artifact.metadata["tensor_maps"])
"""


def test_cubins_with_parameters_of_their_own_are_not_left_for_others_to_launch(
    tmp_path: Path,
) -> None:
    """Inductor starts a cubin it finds by the declared arguments: grouped products with TMA."""
    cache = tmp_path / "files"
    result = run_script(tmp_path / "kernel.py", DESCRIBED, {"TRITON_CACHE_DIR": str(cache)})
    assert result.stdout.split() == ["False", "[]"], result.stderr
