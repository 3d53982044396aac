"""Source locations of ops and what a message shows of them."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
)
from xdsl.ir import Attribute, Operation

from tilewright.support.source import Span


def call_chain(location: Attribute) -> tuple[Span, ...]:
    """The spans of a location, innermost call first; () when it is unknown."""
    return tuple(_spans(location))


def _spans(location: Attribute) -> Iterator[Span]:
    pending = [location]
    while pending:
        match place := pending.pop():
            case FileLineColLoc():
                yield Span(place.filename.data, place.line.data, place.column.data)
            case CallSiteLoc():
                pending += (place.caller, place.callee)
            case NameLoc():
                pending.append(place.location)
            case FusedLoc():
                # Several ops became one: the first that is known stands for all.
                assert isinstance(place.locations, ArrayAttr)
                pending += [part for part in place.locations if call_chain(part)][:1]
            case _:
                pass


def span_of(operation: Operation) -> tuple[Span | None, tuple[Span, ...]]:
    """Where an op comes from, and from where that function was called, outermost last."""
    spans = call_chain(operation.location)
    return (spans[0], spans[1:]) if spans else (None, ())


def is_known(location: LocationAttr) -> bool:
    """Whether a location names at least one line of a file."""
    return isinstance(location, FileLineColLoc) or next(_spans(location), None) is not None


def describe(operation: Operation) -> str:
    """`file:line` of an op, or `an unknown place`."""
    span, _ = span_of(operation)
    return "an unknown place" if span is None else f"{span.file}:{span.line}"
