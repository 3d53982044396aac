"""What `breakpoint()` inside a kernel does: the debugger, with tiles as NumPy arrays."""

from __future__ import annotations

import inspect
import pdb
from collections.abc import Mapping
from types import FunctionType

from tilewright.support.source import Span


def open_debugger(namespace: Mapping[str, object], span: Span | None) -> None:
    """Start `pdb` in a frame that shows the kernel's line and has its variables as names."""

    def stop() -> None:
        frame = inspect.currentframe()
        assert frame is not None
        pdb.Pdb().set_trace(frame.f_back)

    # The frame that the debugger shows is a real one: this function under the kernel's file
    # and line, with the kernel's variables as its globals.
    code = _stop_here.__code__
    if span is not None:
        code = code.replace(
            co_filename=span.file, co_firstlineno=span.line - 1, co_name=span.function or "kernel"
        )
    FunctionType(code, {**namespace, "_stop": stop})()


def _stop_here() -> None:
    _stop()  # type: ignore[name-defined]  # noqa: F821  (a global of the frame made above)
