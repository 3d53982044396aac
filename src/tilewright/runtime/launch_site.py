"""The line of the program that launches a kernel: looked up where a launch was refused."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from types import FrameType

from tilewright.support.errors import CompileError, TilewrightError, UnsupportedError
from tilewright.support.source import Span, source_line

# Whose frames stand between a program and a launch: ours, and what we are called through.
_BETWEEN = frozenset(("tilewright", "triton", "contextlib", "functools"))


@contextmanager
def placing_at_launch() -> Generator[None]:
    """Give an error about a call the place of the launch; it costs nothing without an error."""
    try:
        yield
    except TilewrightError as error:
        place_at_launch(error)
        raise


def place_at_launch(error: TilewrightError) -> None:
    """Note where the running launch was written in an error about its arguments or its grid."""
    is_of_call = isinstance(error, CompileError | UnsupportedError) and error.span is None
    if error.launch is None and (is_of_call or error.is_about_parameter):
        error.launch = _launch_site(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]


def _launch_site(frame: FrameType | None) -> Span | None:
    """The call that the first frame outside of this package is at."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _BETWEEN:
            return _span_of(frame)
        frame = frame.f_back
    return None


def _span_of(frame: FrameType) -> Span:
    code = frame.f_code
    function = "" if code.co_name == "<module>" else code.co_name
    first = Span(code.co_filename, frame.f_lineno, function=function)
    # Two bytes an instruction; where the positions were left out (-X no_debug_ranges) all is None.
    at = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, last_line, start, end = at
    if line is None or start is None or end is None:
        return first
    text = source_line(code.co_filename, line).encode()
    if last_line != line:
        end = len(text.rstrip())
    column, end_column = (
        len(text[:offset].decode(errors="replace")) + 1 for offset in (start, end)
    )
    return Span(code.co_filename, line, column, end_column, function)
