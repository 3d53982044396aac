"""Runs kernels of the language on the reference interpreter, and IR text for what it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tilewright.frontend.lower import lower_kernel
from tilewright.frontend.program import FunctionSource, Specialization
from tilewright.frontend.signature import bind, specialize
from tilewright.interp.evaluate import Argument, run_kernel
from tilewright.ir.levels import T0
from tilewright.ir.verify_level import verify_level
from tilewright.jit import JITFunction


@dataclass(frozen=True)
class Request:
    """What the frontend lowers."""

    functions: Mapping[str, FunctionSource]
    kernel: str
    specialization: Specialization
    options: Mapping[str, object]
    extensions: tuple[str, ...] = ()


def tile_module(kernel: JITFunction, arguments: Sequence[object], **constants: object) -> ModuleOp:
    """The T0 module of a kernel for these arguments."""
    source = kernel.source
    bound = bind(kernel.fn.__name__, source.parameters, arguments, constants, lambda p: p.default)
    specialization = specialize(kernel.fn.__name__, source.parameters, bound)
    options = {"enable_fp_fusion": False, "interpret": True, "debug": True}
    request = Request(source.functions, source.kernel, specialization, options)
    module = lower_kernel(request)
    verify_level(module, T0)
    return module


def interpret(
    kernel: JITFunction,
    grid: Sequence[int],
    *arguments: object,
    settings: Mapping[str, object] | None = None,
    **constants: object,
) -> ModuleOp:
    """Run a kernel on the interpreter; `settings` go to `run_kernel`."""
    module = tile_module(kernel, arguments, **constants)
    (function,) = module.ops
    names = [attributes.data["tt.name"].data for attributes in function.arg_attrs.data]
    by_name = dict(zip((p.name for p in kernel.source.parameters), arguments, strict=False))
    values: list[Argument] = [by_name[name] for name in names]
    run_kernel(module, values, grid, **(settings or {}))
    return module
