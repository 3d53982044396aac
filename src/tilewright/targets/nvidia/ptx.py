"""From the LLVM text of a kernel to PTX."""

from __future__ import annotations

import re

from tilewright.codegen.optimize import compile_module
from tilewright.codegen.whitelist import NVPTX_WHITELIST
from tilewright.targets.target import MachineFeatures

TRIPLE = "nvptx64-nvidia-cuda"
# The newest PTX that LLVM 22 writes and every ptxas from CUDA 12.9 on reads.
PTX_FEATURE = "+ptx88"
# ptxas 13.0 pairs two of them into `HFMA2.BF16_V2 R, -RZ, RZ, |R|`, and the H200 loses the sign
# bit's removal in one half (seen 2026-11-22, fuzz seed 500421). Goes when ptxas pairs them rightly.
_ABS = re.compile(r"\babs\.bf16(x2)?([ \t]+)(%\w+), (%\w+);")


def to_ptx(text: str, machine: MachineFeatures) -> str:
    """The PTX of an LLVM module for a machine's `arch`, such as `sm_90a`.

    Raises: InternalError for what LLVM would end the process on.
    """
    compiled = compile_module(
        text,
        str(machine["arch"]),
        (PTX_FEATURE,),
        TRIPLE,
        whitelist=NVPTX_WHITELIST,
        emit_object=False,
        emit_assembly=True,
    )
    assert compiled.assembly is not None
    return _ABS.sub(_cleared_sign, compiled.assembly)


def _cleared_sign(found: re.Match[str]) -> str:
    """The absolute value of bfloat16 as an operation on its bits."""
    is_pair, space, result, operand = found.groups()
    width, mask = (32, "0x7FFF7FFF") if is_pair else (16, "0x7FFF")
    return f"and.b{width}{space}{result}, {operand}, {mask};"
