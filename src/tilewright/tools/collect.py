"""What the commands look at: the compile requests of a kernel file.

A kernel is compiled for arguments. Either the file is run, as `python FILE` would, and the
requests that its launches make are recorded; or the arguments of one kernel are described on
the command line and nothing is launched.
"""

from __future__ import annotations

import ast
import contextlib
import runpy
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tilewright.compiler.collector import collected_requests
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.constants import Constant
from tilewright.frontend.program import Specialization
from tilewright.frontend.type_text import parse_scalar
from tilewright.jit import JITFunction, make_request
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    InvalidOption,
    MissingArgument,
    TilewrightError,
    UnexpectedArgument,
)
from tilewright.support.options import CompileOptions


class NoKernel(InvalidOption):
    """A file launches no kernel, or none of the name asked for."""

    help = "launch the kernel in the file's main() or describe its arguments with --arg"


@dataclass(frozen=True)
class Collected:
    """The requests of a file, each once and in order, and the error that ended it early."""

    requests: tuple[CompileRequest, ...]
    error: TilewrightError | None = None


def requests_of(file: Path, kernel: str, arguments: Sequence[str]) -> Collected:
    """The requests of one kernel of a file, or of all when `kernel` is ''.

    `arguments` are `name=type` or `name=value`; without any the file is run.

    Raises: `NoKernel` when there are none.
    """
    if arguments:
        return Collected((described_request(file, kernel, arguments),))
    collected = run_file(file)
    kept = [r for r in collected.requests if kernel in ("", r.name)]
    if not kept:
        if collected.error is not None:
            raise collected.error
        names = ", ".join(dict.fromkeys(r.name for r in collected.requests))
        what = f"launches no kernel {kernel!r} (but {names})" if names else "launches no kernel"
        raise NoKernel(f"{file} {what}")
    return Collected(tuple(kept), collected.error)


def run_file(file: Path) -> Collected:
    """Run a file as a program and keep what its kernels were compiled for.

    What it prints goes to stderr. A file that launches nothing by itself but has a function
    `main()` is asked to run that.
    """
    error: TilewrightError | None = None
    with collected_requests() as requests, _as_program(file):
        try:
            names = runpy.run_path(str(file), run_name="__main__")
            main = names.get("main")
            if not requests and callable(main):
                main()
        except TilewrightError as found:
            error = found
        except SystemExit:
            pass
    return Collected(tuple(_each_once(requests)), error)


def _each_once(requests: Iterable[CompileRequest]) -> list[CompileRequest]:
    return list({request.to_bytes(): request for request in requests}.values())


@contextmanager
def _as_program(file: Path) -> Generator[None]:
    """The arguments, the path and the output that a program started alone would have."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [str(file)]
    sys.path.insert(0, str(file.resolve().parent))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.argv, sys.path[:] = argv, path


def described_request(file: Path, kernel: str, arguments: Sequence[str]) -> CompileRequest:
    """The request of a kernel for arguments in words; only the definitions of the file run."""
    with _as_program(file):
        names = runpy.run_path(str(file), run_name="__tilewright__")
    function = _kernel_of(file, names, kernel)
    specialization = describe(function, arguments)
    return make_request(function.source, specialization, CompileOptions())


def _kernel_of(file: Path, names: Mapping[str, object], kernel: str) -> JITFunction:
    found = {name: value for name, value in names.items() if isinstance(value, JITFunction)}
    if kernel in found:
        return found[kernel]
    if not kernel and len(found) == 1:
        return next(iter(found.values()))
    listed = ", ".join(found) or "no kernel"
    raise NoKernel(
        f"{file} has {listed}" + (f", not {kernel!r}" if kernel else ""),
        hint="name one as FILE:KERNEL",
    )


def describe(function: JITFunction, arguments: Sequence[str]) -> Specialization:
    """What a kernel is specialised for by arguments such as `x=*fp32:16`, `n=i32`, `BLOCK=64`.

    A type may end in `:16`, which promises a multiple of 16; anything that is no type is the
    value of a compile-time constant.

    Raises: `UnexpectedArgument`, `MissingArgument`, `InvalidOption`.
    """
    given = dict(_split(argument) for argument in arguments)
    known = function.arg_names
    for name in given:
        if name not in known:
            raise UnexpectedArgument(
                f"{function.fn.__name__}() has no parameter `{name}`",
                hint=f"its parameters are {', '.join(known)}",
            )
    signature: list[tuple[str, str]] = []
    constants: dict[tuple[str | int, ...], Constant] = {}
    divisibility: dict[tuple[str | int, ...], int] = {}
    for parameter in function.source.parameters:
        text = given.get(parameter.name)
        if text is None and not parameter.has_default:
            raise MissingArgument(
                f"{function.fn.__name__}() needs a type or value for `{parameter.name}`",
                hint=f"add --arg {parameter.name}=…, for example i32, *fp32 or 64",
            )
        kind, multiple = _type_of(text)
        signature.append((parameter.name, kind))
        if kind == "constexpr":
            constants[(parameter.name,)] = parameter.default if text is None else _constant(text)
        elif multiple:
            divisibility[(parameter.name,)] = multiple
    return Specialization(tuple(signature), constants, divisibility)


def _split(argument: str) -> tuple[str, str]:
    name, equals, text = argument.partition("=")
    if not equals or not name or not text:
        raise InvalidOption(f"--arg {argument!r} is not of the form name=type")
    return name.strip(), text.strip()


def _type_of(text: str | None) -> tuple[str, int]:
    """The type and the promised multiple; `constexpr` for what is no type."""
    name, _, multiple = (text or "").partition(":")
    if parse_scalar(name.removeprefix("*")) is None:
        return "constexpr", 0
    return name, int(multiple) if multiple.isdigit() else 0


def _constant(text: str) -> bool | int | float | str | None:
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, bool | int | float | str | None) else text
