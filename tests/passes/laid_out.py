"""Kernels of the tests brought to T1 and T2 for Hopper, verified at each step."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.compiler.compile import StageResult, to_schedule, to_tiles
from tilewright.compiler.instruments import verifier_of
from tilewright.compiler.request import CompileRequest
from tilewright.jit import JITFunction
from tilewright.ops.function import FuncOp
from tilewright.support.options import option_names
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.target import load_target


def steps(kernel: JITFunction, arguments: Sequence[object], **options: object) -> dict[str, FuncOp]:
    """The kernel after each pass of the schedule."""
    call = kernel.specialize_call(tuple(arguments), options)
    fields = {name: getattr(call.options, name) for name in option_names()}
    source, machine = call.source, named_machine("sm_90a")
    request = CompileRequest(
        source.functions, source.kernel, call.specialization, fields, "nvidia", machine
    )
    target = load_target("nvidia")
    verify, found = verifier_of(request), {}

    def show(name: str, module: StageResult) -> None:
        assert isinstance(module, ModuleOp)
        verify(name, module)
        found[name] = function_of(module.clone())

    to_schedule(request, target, to_tiles(request, target), show)
    return found


def function_of(module: ModuleOp) -> FuncOp:
    """The one function of a module."""
    (function,) = module.body.block.ops
    assert isinstance(function, FuncOp)
    return function


def named(top: Operation, name: str) -> list[Operation]:
    """The ops of one name inside of an op, in order."""
    return [op for op in top.walk() if op.name == name]


def names(top: Operation) -> list[str]:
    """The names of all ops inside of an op, in order."""
    return [op.name for op in top.walk()]
