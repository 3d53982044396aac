"""Two kernels in one function: each the body of a role, run by warps of its own at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.corpus.roles import ALIGNMENT, emit_body
from tests.unit.codegen.simt.launching import MACHINE
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.partition import Partition, whole_cta
from tilewright.codegen.simt.roles import emit_partitions
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.interp.simt.statistics import Report
from tilewright.jit import JITFunction
from tilewright.ops.function import FuncOp
from tilewright.support.options import option_names
from tilewright.targets.nvidia.emit import find_kernel
from tilewright.targets.nvidia.math import NvidiaMath
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.nvidia.services import NvidiaServices
from tilewright.targets.target import load_target


@dataclass(frozen=True)
class Role:
    """A kernel with the array that it reads and the one that it writes."""

    kernel: JITFunction
    arrays: tuple[Argument, Argument]
    warps: int = 4
    replicas: int = 1
    registers: int = 0


def scheduled(role: Role) -> tuple[FuncOp, int]:
    """The T2 body of a role, and the shared memory that it takes."""
    call = role.kernel.specialize_call(role.arrays, {"num_warps": role.warps})
    fields = {name: getattr(call.options, name) for name in option_names()}
    source, target = call.source, load_target("nvidia")
    request = CompileRequest(
        source.functions, source.kernel, call.specialization, fields, "nvidia", MACHINE
    )
    made = to_schedule(request, target, to_tiles(request, target, None), None)
    size = int(str(made.metadata["shared_bytes"]))
    return find_kernel(made.module), -(-size // ALIGNMENT) * ALIGNMENT


def partitions_of(roles: Sequence[Role], sizes: Sequence[int]) -> list[Partition]:
    """Warps, barriers and shared memory one behind the other."""
    cta_warps = sum(role.replicas * role.warps for role in roles)
    warp, barrier, start = 0, 1, 0
    found: list[Partition] = []
    for role, size in zip(roles, sizes, strict=True):
        part = Partition(
            cta_warps, role.warps, warp, role.replicas, barrier, start, size, role.registers
        )
        warp, start = part.end_warp, part.shared.stop
        barrier += role.replicas
        found.append(part)
    return found


def emit_roles(roles: Sequence[Role]) -> tuple[str, list[Partition]]:
    """The LLVM text of a function `k` of all roles; its arguments are theirs in turn."""
    bodies, sizes = zip(*(scheduled(role) for role in roles), strict=True)
    partitions = partitions_of(roles, sizes)
    warps = partitions[0].cta_warps
    module = ModuleBuilder()
    module.add_global("shared", "external addrspace(3) global [0 x i8], align 1024")
    names = [f"ptr addrspace(1) %a{index}" for index in range(2 * len(roles))]
    fn = FunctionBuilder(module, f"define ptx_kernel void @k({', '.join(names)})")
    fn.attributes["nvvm.reqntid"] = f"{32 * warps},1,1"
    services = NvidiaServices(module, NvidiaMath(), warps, MACHINE)
    ctx = SimtContext(module, fn, NVIDIA_RULES, services, default_rules=DEFAULT_RULES)
    with ctx.open_scope(whole_cta(warps)):
        arguments = [argument for body in bodies for argument in body.body.block.args]
        for index, argument in enumerate(arguments):
            text = f"addrspacecast ptr addrspace(1) %a{index} to ptr"
            ctx.values[argument] = fn.prologue_value(text)
        emit_partitions(
            ctx,
            [
                (part, lambda body=body: emit_body(ctx, body))
                for part, body in zip(partitions, bodies, strict=True)
            ],
        )
        fn.emit("ret void")
    module.add_function("k", fn.text())
    return module.text(), partitions


def run_roles(roles: Sequence[Role], seed: int | None = None) -> Report:
    """Simulate all roles as one program."""
    text, partitions = emit_roles(roles)
    arguments = [array for role in roles for array in role.arrays]
    last = partitions[-1]
    return simulate(
        text, "k", (1, 1, 1), 32 * last.cta_warps, arguments, last.shared.stop, seed=seed
    )
