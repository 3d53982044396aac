"""Our errors as programs for Triton expect them: of Python's class, with Triton's position."""

from __future__ import annotations

from copy import copy
from functools import cache

from tilewright.support.errors import (
    ArgumentNotSupported,
    CapturedValueChanged,
    CompileError,
    DuplicateArgument,
    InvalidOption,
    LiteralOutOfRange,
    MissingArgument,
    NotAKernelLaunch,
    SharedMemoryExceeded,
    TilewrightError,
    UnexpectedArgument,
)
from tilewright.support.source import Span
from tilewright.targets.nvidia.errors import ResourcesExceeded

from .errors import OutOfResources

# What Triton raises where we raise errors of our own: programs catch these classes.
_PYTHON_CLASSES: dict[type[TilewrightError], type[Exception]] = {
    ArgumentNotSupported: TypeError,
    CapturedValueChanged: RuntimeError,
    DuplicateArgument: TypeError,
    LiteralOutOfRange: OverflowError,
    MissingArgument: TypeError,
    NotAKernelLaunch: RuntimeError,
    UnexpectedArgument: KeyError,
}


@cache
def _combined(ours: type[TilewrightError], python: type[Exception]) -> type[TilewrightError]:
    def reduce(error: TilewrightError) -> tuple[object, ...]:
        return (_rebuild, (ours, python, error.summary, error.__dict__.copy()))

    members = {"__doc__": ours.__doc__, "__str__": ours.__str__, "__reduce__": reduce}
    return type(ours.__name__, (ours, python), members)


def _rebuild(
    ours: type[TilewrightError], python: type[Exception], summary: str, state: dict[str, object]
) -> TilewrightError:
    error = _combined(ours, python).__new__(_combined(ours, python))
    Exception.__init__(error, summary)
    error.__dict__.update(state)
    return error


def as_triton_raises(
    error: TilewrightError,
    python: type[Exception] | None = None,
    first_line: int | None = None,
    indent: int = 0,
) -> TilewrightError:
    """`error`, also of the class of Python that Triton raises in its place.

    An error with a place in a kernel is a `CompilationError` in Triton too; where the line of
    the kernel's `def` is known it says the place in Triton's words, `at LINE:COLUMN:`, in the
    text of the kernel without the `indent` columns before that `def`.
    """
    if isinstance(error, SharedMemoryExceeded | ResourcesExceeded):
        return _out_of_resources(error)
    if error.span is not None and python is None:
        return _with_position(error, first_line, indent)
    wanted = python or _PYTHON_CLASSES.get(type(error))
    if wanted is None or isinstance(error, wanted):
        return error
    return _rebuild(type(error), wanted, error.summary, error.__dict__)


def _out_of_resources(error: SharedMemoryExceeded | ResourcesExceeded) -> TilewrightError:
    """The error as one that tuners of Triton's programs catch, with their numbers where known."""
    if isinstance(error, OutOfResources):
        return error
    needs = {"required": 0, "limit": 0, "name": "registers, threads or shared memory"}
    if isinstance(error, SharedMemoryExceeded):
        needs |= {"required": error.required_bytes, "limit": error.limit_bytes}
        needs["name"] = "shared memory"
    return _rebuild(type(error), OutOfResources, error.summary, {**error.__dict__, **needs})


def as_launch_raises(error: TilewrightError) -> TilewrightError:
    """`error` about the arguments of a launch, of the class that Triton's binder raises."""
    error.preface = error.preface or error.known_as
    if isinstance(error, InvalidOption) and error.known_as:
        return as_triton_raises(error, AssertionError)
    return as_triton_raises(error, _PYTHON_CLASSES.get(type(error)))


def _with_position(error: TilewrightError, first_line: int | None, indent: int) -> TilewrightError:
    if isinstance(error, (AssertionError, *_PYTHON_CLASSES.values())):
        return error  # of a launch: it names the parameter, where Triton names no place
    error.__cause__ = _cause_of(error)
    place = error.chain[-1] if error.chain else error.span
    if isinstance(error, CompileError) and place is not None and first_line is not None:
        error.preface = _preface(place, (first_line, indent), error.known_as)
    return error


def _preface(place: Span, definition: tuple[int, int] | None, known_as: str) -> str:
    """Triton's words for a place in a function, and its phrase for what is wrong there."""
    if definition is None:
        return known_as
    first_line, indent = definition
    position = f"at {place.line - first_line + 1}:{place.column - 1 - indent}:"
    return f"{position} {known_as}" if known_as else position


def _cause_of(error: TilewrightError) -> Exception | None:
    """What Triton raises in the function that was called: None for an error in the kernel itself.

    Each call on the way is an error of its own, the cause of the one in its caller. A function of
    the language raises an error of Python with the phrase that Triton has for it.
    """
    if not error.chain:
        return ValueError(error.known_as) if error.known_as else None
    inner = copy(error)
    inner.__cause__ = None
    inner.chain = ()
    if inner.span is not None:
        inner.preface = _preface(inner.span, inner.span.definition, error.known_as)
    for depth in range(1, len(error.chain)):
        outer = copy(inner)
        outer.chain, outer.__cause__ = error.chain[:depth], inner
        place = error.chain[depth - 1]
        outer.preface = _preface(place, place.definition, error.known_as)
        inner = outer
    return inner
