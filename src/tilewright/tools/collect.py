"""What the commands look at: the compile requests of a kernel file.

A kernel is compiled for arguments. Either the file is run, as `python FILE` would, and the
requests that its launches make are recorded; or the arguments of one kernel are described on
the command line and nothing is launched.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import runpy
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType

from tilewright.compiler.build import make_request
from tilewright.compiler.collector import CompileCall, collected_calls
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.constants import Constant
from tilewright.frontend.devices import DevicePlacement
from tilewright.frontend.program import Specialization
from tilewright.frontend.type_text import parse_scalar
from tilewright.jit import JITFunction
from tilewright.machine.gpus import GPUS
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    InvalidOption,
    MissingArgument,
    TilewrightError,
    UnexpectedArgument,
)
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.host import NAMED_MACHINES, named_machine

_STDOUT, _STDERR = 1, 2
# The `__name__` of a file of which only the definitions shall run.
_IMPORTED = "__tilewright__"


class NoFunction(InvalidOption):
    """A file has no function of a name that can be called without arguments."""


class NoKernel(InvalidOption):
    """A file launches no kernel, or none of the name asked for."""

    help = (
        "launch the kernel in the file's main(), name a function that launches it with "
        "--function, or describe its arguments with --arg"
    )


@dataclass(frozen=True)
class Collected:
    """The requests of a file, each once and in order, and the error that ended it early."""

    requests: tuple[CompileRequest, ...]
    error: TilewrightError | None = None


def requests_of(
    file: Path,
    kernel: str,
    arguments: Sequence[str],
    machine: str = "cpu",
    options: Sequence[str] = (),
    function: str = "",
) -> Collected:
    """The requests of one kernel of a file, or of all when `kernel` is '', for a machine.

    `arguments` are `name=type` or `name=value`, with `options` as `name=value`; without any
    argument the file is run, on the CPU, and its kernels are compiled for `machine`. With a
    `function` the file is imported, and the kernels are those that the function launches.

    Raises: `NoKernel` when there are none, `InvalidOption` for an unknown machine,
    `MachineNotSupported` for one without rules.
    """
    if machine not in ("cpu", "mlir") and machine not in GPUS:
        known = ", ".join(("cpu", "mlir", *NAMED_MACHINES))
        raise InvalidOption(f"there is no machine {machine!r}", hint=f"the machines are {known}")
    if machine not in ("cpu", "mlir"):
        named_machine(machine)  # one without rules is refused before the file is run
    if arguments and function:
        raise InvalidOption("--function does not go with --arg", hint="leave one of them out")
    if arguments:
        call = described_call(file, kernel, arguments, options)
        return Collected((_request(call, machine),))
    if options:
        raise InvalidOption("--option goes with --arg", hint="a file that is run has its options")
    calls, error = run_file(file, function)
    kept = [call for call in calls if kernel in ("", _name(call))]
    if not kept:
        if error is not None:
            raise error
        names = ", ".join(dict.fromkeys(_name(call) for call in calls))
        what = f"launches no kernel {kernel!r} (but {names})" if names else "launches no kernel"
        raise NoKernel(f"{file} {what}")
    return Collected(tuple(_each_once(_request(call, machine) for call in kept)), error)


def _name(call: CompileCall) -> str:
    return call.source.functions[call.source.kernel].name


def _request(call: CompileCall, machine: str) -> CompileRequest:
    """The request of a call for `cpu`, which is this machine's, `mlir`, or a named GPU."""
    if machine in ("cpu", "mlir"):
        return make_request(
            call.source, call.specialization, call.options, DevicePlacement(machine)
        )
    return make_request(
        call.source,
        call.specialization,
        call.options,
        DevicePlacement("nvidia"),
        named_machine(machine),
    )


def run_file(file: Path, function: str = "") -> tuple[list[CompileCall], TilewrightError | None]:
    """Run a file as a program: what its kernels were compiled for, and how it ended.

    What it prints goes to stderr. A file that launches nothing by itself but has a function
    `main()` is asked to run that. With a `function` the file's own `__main__` part does not run,
    and what its top level launches does not count.

    Raises: `NoFunction`.
    """
    with collected_calls() as calls:
        error = run_program(file, lambda: bool(calls), function, calls.clear)
    return calls, error


def run_program(
    file: Path,
    has_launched: Callable[[], bool],
    function: str = "",
    forget: Callable[[], None] = lambda: None,
) -> TilewrightError | None:
    """Run a file as a program, then its `main()` if nothing was launched; how it ended.

    With a `function` the file is imported, `forget()` is called, and then the function.
    Raises: `NoFunction`.
    """
    print(f"{file} runs; what it prints follows here", file=sys.stderr)
    with _as_program(file):
        try:
            names = runpy.run_path(str(file), run_name=_IMPORTED if function else "__main__")
            if function:
                called = _function_of(file, names, function)
                forget()
                called()
            elif not has_launched() and callable(main := names.get("main")):
                main()
        except NoFunction:
            raise
        except TilewrightError as found:
            return found
        except SystemExit:
            pass
    return None


def _function_of(file: Path, names: Mapping[str, object], name: str) -> Callable[[], object]:
    found = names.get(name)
    if isinstance(found, FunctionType) and not _required(found):
        return found
    fitting = [n for n, v in names.items() if isinstance(v, FunctionType) and not _required(v)]
    reason = "needs arguments" if isinstance(found, FunctionType) else "is no function"
    raise NoFunction(
        f"`{name}` of {file} {reason}",
        hint=f"name one that takes none: {', '.join(fitting) or 'there is none'}",
    )


def _required(function: FunctionType) -> list[str]:
    """The parameters without a default."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]


def _each_once(requests: Iterable[CompileRequest]) -> list[CompileRequest]:
    return list({request.to_bytes(): request for request in requests}.values())


@contextmanager
def _as_program(file: Path) -> Generator[None]:
    """The arguments, the path and the output that a program started alone would have."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [str(file)]
    sys.path.insert(0, str(file.resolve().parent))
    try:
        with contextlib.redirect_stdout(sys.stderr), _descriptor_apart():
            yield
    finally:
        sys.argv, sys.path[:] = argv, path


@contextmanager
def _descriptor_apart() -> Generator[None]:
    """The file descriptor of stdout leads to stderr: kernels and child processes print there."""
    sys.stdout.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)


def described_call(
    file: Path, kernel: str, arguments: Sequence[str], options: Sequence[str] = ()
) -> CompileCall:
    """A kernel for arguments and options in words; only the definitions of the file run."""
    with _as_program(file):
        names = runpy.run_path(str(file), run_name=_IMPORTED)
    function = _kernel_of(file, names, kernel)
    chosen = {name: _literal(text) for name, text in map(_split, options)}
    return CompileCall(
        function.source, describe(function, arguments), CompileOptions().replaced(chosen)
    )


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
    value = _literal(text)
    return value if isinstance(value, bool | int | float | str | None) else text


def _literal(text: str) -> object:
    """The Python value that a text spells, or the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
