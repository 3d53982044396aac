"""Kernels of the tests brought to T0 and to C2, as text and as modules."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.lower import lower_kernel
from tilewright.jit import JITFunction
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import IfOp
from tilewright.runtime.drivers import load_driver
from tilewright.support.dataclass import replace
from tilewright.support.options import option_names
from tilewright.targets.cpu.ops import DotOp
from tilewright.targets.cpu.schedule.passes import NestReport
from tilewright.targets.target import load_target

WIDE = replace(
    MADE_UP_CPU, vector_bytes=64, num_registers=32, features=("+avx512f", "+fma", "+avx2")
)


def request_of(kernel: JITFunction, **values: object) -> CompileRequest:
    """The compile request of a launch with these arguments."""
    call = kernel.specialize_call((), values)
    options = {name: getattr(call.options, name) for name in option_names()}
    source = kernel.source
    machine = load_driver("cpu").machine()
    return CompileRequest(
        source.functions, source.kernel, call.specialization, options, "cpu", machine
    )


def written(kernel: JITFunction, **values: object) -> ModuleOp:
    """T0 as the frontend writes it."""
    return lower_kernel(request_of(kernel, **values))


def tiles(kernel: JITFunction, **values: object) -> ModuleOp:
    """T0 after the CPU's tile passes."""
    request = request_of(kernel, **values)
    return to_tiles(request, load_target("cpu"), None)


def nests(
    kernel: JITFunction, machine: MachineModel = WIDE, **values: object
) -> tuple[ModuleOp, NestReport]:
    """C2 for a machine with AVX-512, verified, and the schedule's report."""
    request, target = request_of(kernel, **values), load_target("cpu")
    wide = replace(request, machine=machine)
    scheduled = to_schedule(wide, target, to_tiles(request, target))
    scheduled.module.verify()
    assert isinstance(scheduled.report, NestReport)
    return scheduled.module, scheduled.report


def count(module: ModuleOp, name: str) -> int:
    """How many ops of one name a module holds."""
    return sum(op.name == name for op in module.walk())


def packing_products(module: ModuleOp) -> list[DotOp]:
    """The products of a C2 module, but for the calls that read what another program has packed."""
    dots = [op for op in named(module, "cpu.dot") if isinstance(op, DotOp)]
    return [op for op in dots if op.b_source is not None or not isinstance(op.parent_op(), IfOp)]


def named(module: ModuleOp, name: str) -> list[Operation]:
    """The ops of one name, in order."""
    return [op for op in module.walk() if op.name == name]
