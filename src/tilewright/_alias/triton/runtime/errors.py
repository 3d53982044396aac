"""`triton.runtime.errors`: errors of launching, under Triton's names."""

from __future__ import annotations

from tilewright.runtime.tuning import NoUsableConfig as AutotunerError
from tilewright.support.errors import KernelFault as InterpreterError
from tilewright.support.errors import TilewrightError as TritonError
from tilewright.support.errors import UnsupportedError


class OutOfResources(UnsupportedError):
    """A kernel needs more of a resource than the device has."""

    def __init__(self, required: int, limit: int, name: str) -> None:
        super().__init__(
            f"out of resource: {name}, Required: {required}, Hardware limit: {limit}",
            hint="Reducing block sizes or `num_stages` may help.",
        )
        self.required = required
        self.limit = limit
        self.name = name


class PTXASError(UnsupportedError):
    """The assembler refused a kernel."""

    def __init__(self, error_message: str | None = None) -> None:
        super().__init__(f"PTXAS error: {error_message or 'no message'}")


__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError", "TritonError"]
