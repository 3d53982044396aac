"""From the LLVM text of a kernel to PTX."""

from __future__ import annotations

from tilewright.codegen.optimize import compile_module
from tilewright.codegen.whitelist import NVPTX_WHITELIST
from tilewright.machine.model import MachineModel
from tilewright.targets.nvidia.ptxas_defects import avoid_ptxas_defects

# The newest PTX that LLVM 22 writes and every ptxas from CUDA 12.9 on reads.
PTX_FEATURE = "+ptx88"


def to_ptx(text: str, machine: MachineModel) -> str:
    """The PTX of an LLVM module for a machine's `arch`, such as `sm_90a`.

    Raises: InternalError for what LLVM would end the process on.
    """
    compiled = compile_module(
        text,
        machine.arch,
        (PTX_FEATURE,),
        machine.triple,
        whitelist=NVPTX_WHITELIST,
        emit_object=False,
        emit_assembly=True,
    )
    assert compiled.assembly is not None
    return avoid_ptxas_defects(compiled.assembly)
