"""The text of a kernel for given arguments."""

from __future__ import annotations

from tests.corpus.case import Case
from tests.corpus.run import guarded
from tilewright.compiler.build import make_request
from tilewright.compiler.stages import schedule_of
from tilewright.frontend.devices import DevicePlacement
from tilewright.jit import JITFunction
from tilewright.targets.mlir.emit import emit_module
from tilewright.targets.target import Scheduled


def scheduled(kernel: JITFunction, *arguments: object, **constants: object) -> Scheduled:
    """A kernel in front of its emission, with the remarks."""
    call = kernel.specialize_call(arguments, constants)
    placement = DevicePlacement("mlir")
    return schedule_of(make_request(call.source, call.specialization, call.options, placement))


def text_of(kernel: JITFunction, *arguments: object, **constants: object) -> str:
    """The module that a kernel is in the core dialects."""
    return emit_module(scheduled(kernel, *arguments, **constants).module)


def scheduled_case(case: Case) -> Scheduled:
    """A case of the corpus in front of its emission."""
    return scheduled(case.kernel, **guarded(case.values()).values, **case.options)
