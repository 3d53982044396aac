"""What `breakpoint()` inside a kernel does: the debugger, with tiles as NumPy arrays.

The debugger is `pdb`, over the kernel's frames alone: `where` shows the calls inside the kernel,
`next`, `step` and `return` go on to another line of it in the same program of the grid. The
interpreter's own frames are never seen. Which lines the kernel comes by is known because a kernel
with a breakpoint marks each of its statements (`tw.breakpoint` with `is_step`).
"""

from __future__ import annotations

import bdb
import inspect
import pdb
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, FunctionType
from typing import NamedTuple, TextIO

from tilewright.support.dataclass import dataclass
from tilewright.support.source import Span

_GO_ON = True


@dataclass(frozen=True)
class Stop:
    """Where a program is: its variables there, the line, and the calls that led to it.

    `chain` holds the lines of the calls, the innermost first; `functions` the names of the
    functions, from the one that stops outwards. `is_step` says that the program only comes by,
    and asked for no stop.
    """

    namespace: Mapping[str, object]
    span: Span | None
    chain: Sequence[Span] = ()
    functions: Sequence[str] = ()
    program: tuple[int, int, int] = (0, 0, 0)
    is_step: bool = False


class KernelDebugger:
    """Stops at breakpoints, and at the lines that the user steps to; one for each launch."""

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self._streams = (stdin, stdout)
        self._prompt: _Prompt | None = None

    def __call__(self, stop: Stop) -> None:
        """Show the prompt, unless the program only comes by and the user did not step here."""
        if stop.is_step and (self._prompt is None or not self._prompt.is_awaited(stop)):
            return
        if self._prompt is None:
            self._prompt = _Prompt(*self._streams)
        self._prompt.open(stop)


class _Prompt(pdb.Pdb):
    """`pdb` at one place of a kernel."""

    def __init__(self, stdin: TextIO | None, stdout: TextIO | None) -> None:
        super().__init__(stdin=stdin, stdout=stdout, nosigint=True)
        self.reset()
        self._frames: list[FrameType] = []
        self._at: Stop | None = None
        # The deepest call at which the next line is shown; None runs on to a breakpoint.
        self._awaited_depth: int | None = None

    def is_awaited(self, stop: Stop) -> bool:
        """Whether the user steps, in this program and not inside a call that is stepped over."""
        if self._awaited_depth is None or self._at is None or stop.program != self._at.program:
            return False
        return len(stop.chain) <= self._awaited_depth

    def open(self, stop: Stop) -> None:
        """Ask what to do at a place. Raises: `bdb.BdbQuit` when the user quits."""
        self._at, self._awaited_depth = stop, None
        names: list[str | None] = [*stop.functions, *[None] * len(stop.chain), None]
        inner = _Place(stop.span, names[0], stop.namespace)
        outer = [
            _Place(span, name, {"program_id": stop.program})
            for span, name in zip(stop.chain, names[1:], strict=False)
        ]
        _in_frames([*reversed(outer), inner], self._frames, self._ask)
        if self.quitting:
            raise bdb.BdbQuit

    def _ask(self) -> None:
        try:
            self.interaction(self._frames[-1], None)
        finally:
            self._frames.clear()

    def get_stack(self, f: FrameType | None, t: object) -> tuple[list[tuple[FrameType, int]], int]:
        """The kernel's frames, the innermost last."""
        return [(frame, frame.f_lineno) for frame in self._frames], len(self._frames) - 1

    def _go_on(self, calls: int) -> bool:
        assert self._at is not None
        self._awaited_depth = len(self._at.chain) + calls
        return _GO_ON

    def do_next(self, arg: str) -> bool:
        """Go on to the next line of this function, or of its caller."""
        return self._go_on(0)

    def do_step(self, arg: str) -> bool:
        """Go on to the next line, also inside a function that is called."""
        return self._go_on(1 << 30)

    def do_return(self, arg: str) -> bool:
        """Go on to the next line of the caller."""
        return self._go_on(-1)

    def do_continue(self, arg: str) -> bool:
        """Go on to the next breakpoint."""
        return _GO_ON

    do_n = do_until = do_unt = do_next
    do_s, do_r, do_c, do_cont = do_step, do_return, do_continue, do_continue
    do_longlist = do_ll = pdb.Pdb.do_list


class _Place(NamedTuple):
    """One frame of the kernel: a line, the name of the function, its variables."""

    span: Span | None
    function: str | None
    namespace: Mapping[str, object]


def _in_frames(places: Sequence[_Place], frames: list[FrameType], ask: Callable[[], None]) -> None:
    """Call `ask` within a Python frame for each place, each called by the one before it.

    The frames are real ones: a function under the kernel's file, line and name, with the
    kernel's variables as its globals.
    """
    if not places:
        ask()
        return
    (span, name, namespace), *inner = places

    def stop() -> None:
        frame = inspect.currentframe()
        assert frame is not None and frame.f_back is not None
        frames.append(frame.f_back)
        _in_frames(inner, frames, ask)

    code = _stop_here.__code__
    if span is not None:
        code = code.replace(
            co_filename=span.file, co_firstlineno=span.line - 1, co_name=name or "kernel"
        )
    FunctionType(code, {**namespace, "_stop": stop})()


def _stop_here() -> None:
    _stop()  # type: ignore[name-defined]  # noqa: F821  (a global of the frame made above)
