"""Options: what the user can choose, and the only place that reads the environment.

Three objects, by what they may change. `CompileOptions` changes the generated code and is
hashed into every cache key. `DebugOptions` only shows or checks what the compiler does.
`RuntimeOptions` says where and how compiled kernels run. The last two come from environment
variables, each declared once in `VARIABLES`, and are read live: a test or a notebook may set
a variable at any time.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import CompileError, InvalidOption

if TYPE_CHECKING:
    from pathlib import Path

Value_co = TypeVar("Value_co", covariant=True)
OptionValue = int | str | tuple[int, ...] | None
INPUT_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
"""How float32 operands enter a product; `inputPrecision` of a `tt.dot` is an index here."""
DESCRIPTOR_MODES = ("auto", "pointers")


class UnknownOption(CompileError):
    """A launch or a configuration names a compile option that does not exist."""


class InvalidVariable(CompileError):
    """An environment variable has a value that cannot be read."""


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_power_of_two(value: object) -> bool:
    return type(value) is int and value >= 1 and value & (value - 1) == 0


def _is_register_cap(value: object) -> bool:
    return value is None or (type(value) is int and 1 <= value <= 255)


def _is_group_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= 3


def _is_buffer_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= 64


def _is_role_registers(value: object) -> bool:
    return type(value) is int and (value == 0 or (24 <= value <= 248 and value % 8 == 0))


def _is_cluster(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, tuple) or len(value) != 3:
        return False
    return all(type(size) is int and 1 <= size <= 16 for size in value)


def _is_optional_count(value: object) -> bool:
    return value is None or _is_count(value)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_optional_flag(value: object) -> bool:
    return value is None or type(value) is bool


def _is_input_precision(value: object) -> bool:
    return value is None or value in INPUT_PRECISIONS


def _is_descriptor_mode(value: object) -> bool:
    return value in DESCRIPTOR_MODES


# Option -> its domain as a predicate and in the user's words.
_DOMAINS: dict[str, tuple[Callable[[object], bool], str]] = {
    "num_warps": (_is_power_of_two, "a power of two, as an int"),
    "num_stages": (_is_optional_count, "None or an int of at least 1"),
    "num_ctas": (_is_power_of_two, "a power of two, as an int"),
    "maxnreg": (_is_register_cap, "None or an int from 1 to 255"),
    "cluster_dims": (_is_cluster, "None or three ints from 1 to 16"),
    "launch_cooperative_grid": (_is_flag, "True or False"),
    "launch_pdl": (_is_flag, "True or False"),
    "ptx_options": (_is_text, "None or flags of ptxas, as a str"),
    "enable_fp_fusion": (_is_flag, "True or False"),
    "debug": (_is_flag, "True or False"),
    "sanitize_overflow": (_is_optional_flag, "None, True or False"),
    "checked": (_is_flag, "True or False"),
    "default_dot_input_precision": (
        _is_input_precision,
        "None or one of " + ", ".join(repr(name) for name in INPUT_PRECISIONS),
    ),
    "descriptors": (_is_descriptor_mode, "'auto' or 'pointers'"),
    "plan": (_is_text, "None or lines such as `load#0 copy registers`, as a str"),
    "num_consumer_groups": (_is_group_count, "an int from 0 to 3"),
    "num_buffers_warp_spec": (_is_buffer_count, "an int from 0 to 64"),
    "reg_dec_producer": (_is_role_registers, "0 or a multiple of 8 from 24 to 248"),
    "reg_inc_consumer": (_is_role_registers, "0 or a multiple of 8 from 24 to 248"),
    "schedule": (_is_text, "None or the text of a schedule, as a str"),
}


@dataclass(frozen=True)
class CompileOptions:
    """The options that change the generated code; hashed into the cache key.

    `num_stages` None leaves it to the compiler how far loads run ahead of their loops, 1 has none
    do so, more is the number of tiles under way. `maxnreg` None leaves the register count to the
    assembler. `cluster_dims` None makes clusters of `num_ctas` programs along the first axis of
    the grid. `launch_cooperative_grid` starts all programs of a grid together, `launch_pdl` before
    the launch ahead of it has ended. `debug` compiles `device_assert`; `sanitize_overflow` reports
    sums, differences and products of integers that do not fit their type (None: with `debug`);
    `checked` reports out-of-bounds access, int32 offset overflow and integer division by zero, and
    compiles `device_assert`.
    `default_dot_input_precision` None leaves the precision of an f32 `dot` to the target.
    `descriptors` "pointers" makes loads and stores through tensor descriptors plain ones, where
    "auto" leaves them to copy engines as far as the machine has them. `plan` takes decisions from
    the compiler, a line for each (`schedule/plan/given.py`). `num_consumer_groups` makes
    roles of a program on a GPU: one that loads, and so many groups of 4 warps that share the rows
    of its products; 0 makes none. `num_buffers_warp_spec` is how many tiles of a loop are under
    way then, 0 as many as fit; `reg_dec_producer` and `reg_inc_consumer` are the registers of a
    thread that loads and of one that multiplies, 0 what suits the number of groups. `schedule` is
    the text of a schedule on a GPU, which takes the place of these and of `num_stages`.

    Raises: `InvalidOption` when a value is outside its domain.
    """

    num_warps: int = 4
    num_stages: int | None = None
    num_ctas: int = 1
    maxnreg: int | None = None
    cluster_dims: tuple[int, int, int] | None = None
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    ptx_options: str | None = None
    enable_fp_fusion: bool = True
    debug: bool = False
    sanitize_overflow: bool | None = None
    checked: bool = False
    default_dot_input_precision: str | None = None
    descriptors: str = "auto"
    plan: str | None = None
    num_consumer_groups: int = 0
    num_buffers_warp_spec: int = 0
    reg_dec_producer: int = 0
    reg_inc_consumer: int = 0
    schedule: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.cluster_dims, list):
            object.__setattr__(self, "cluster_dims", tuple(self.cluster_dims))
        for name, (is_valid, domain) in _DOMAINS.items():
            value = getattr(self, name)
            if not is_valid(value):
                raise InvalidOption(
                    f"option `{name}` is {value!r}", argument=name, hint=f"pass {domain}"
                )

    def replaced(self, changes: Mapping[str, object]) -> CompileOptions:
        """These options with `changes` applied by name.

        Raises: `UnknownOption` for a name that is no option, `InvalidOption` for a bad value.
        """
        for name in changes:
            _require_option(name)
        return replace(self, **changes)

    def to_json(self) -> str:
        """These options as one line of JSON with sorted names: equal options, equal text."""
        return json.dumps(self._fields(), sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> CompileOptions:
        """The options that `to_json` wrote; a name that is missing has its default.

        Raises: `UnknownOption`, `InvalidOption`.
        """
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise InvalidOption("compile options are not a JSON object", hint=f"got {text[:80]!r}")
        return CompileOptions().replaced(fields)

    def _fields(self) -> dict[str, OptionValue]:
        return {name: getattr(self, name) for name in _DOMAINS}


def option_names() -> tuple[str, ...]:
    """The names of all compile options, in the order of `CompileOptions`."""
    return tuple(_DOMAINS)


def _require_option(name: str) -> None:
    if name not in _DOMAINS:
        raise UnknownOption(
            f"there is no compile option `{name}`",
            argument=name,
            hint="the options are " + ", ".join(f"`{known}`" for known in option_names()),
        )


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


def _parse_size_bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip().upper())
    if match is None:
        raise ValueError(text)
    return int(match[1]) << 10 * " KMGT".index(match[2] or " ")


def _parse_target(text: str) -> str:
    word = text.strip().lower()
    if word not in ("auto", "cpu", "nvidia"):
        raise ValueError(text)
    return word


def _parse_path(text: str) -> Path:
    return _path(os.path.expanduser(text)).absolute()


def _path(*parts: str) -> Path:
    from pathlib import Path  # six modules, which an import of the package leaves unloaded

    return Path(*parts)


def _flag(name: str, meaning: str) -> Variable[bool]:
    return Variable(name, "1 or 0", False, meaning, _parse_flag, "0")


_CACHE_DIR: Variable[Path | None] = Variable(
    "TILEWRIGHT_CACHE_DIR",
    "a directory",
    None,
    "Where compiled kernels and tuning results are kept.",
    _parse_path,
    "the user's cache directory",
)
_CACHE_SIZE = Variable(
    "TILEWRIGHT_CACHE_SIZE",
    "a number of bytes such as 512M or 2G",
    2 << 30,
    "The size above which the least recently used cache entries are removed.",
    _parse_size_bytes,
    "2G",
)
_DISABLE_CACHE = _flag(
    "TILEWRIGHT_DISABLE_CACHE", "Keep compiled kernels in memory only; read and write no disk."
)
_NUM_THREADS: Variable[int | None] = Variable(
    "TILEWRIGHT_NUM_THREADS",
    "a positive number of threads",
    None,
    "How many threads run a grid on the CPU.",
    _parse_count,
    "the CPUs that this process may use",
)
_TARGET = Variable(
    "TILEWRIGHT_TARGET",
    "auto, cpu or nvidia",
    "auto",
    "Where kernels run: auto asks each launch's arrays.",
    _parse_target,
)
_PTXAS: Variable[Path | None] = Variable(
    "TILEWRIGHT_PTXAS",
    "the path of a ptxas",
    None,
    "The assembler for NVIDIA GPUs.",
    _parse_path,
    "the one on PATH, in CUDA_HOME, or of the nvidia-cuda-nvcc wheel",
)
_CHECKED = _flag(
    "TILEWRIGHT_CHECKED",
    "Compile kernels that report out-of-bounds access, int32 offset overflow and failed asserts.",
)
_DEBUG = _flag("TILEWRIGHT_DEBUG", "Compile `device_assert` into every kernel.")
_INTERPRET = _flag("TILEWRIGHT_INTERPRET", "Run every kernel in the reference interpreter.")
_SIMULATE = Variable(
    "TILEWRIGHT_SIMULATE",
    "a GPU such as sm_90a",
    "",
    "Run every kernel in the simulator of this GPU, with every access checked.",
    str.strip,
    "unset",
)
_DUMP_IR: Variable[Path | None] = Variable(
    "TILEWRIGHT_DUMP_IR",
    "a directory",
    None,
    "Write the IR of every compiled kernel after every pass below this directory.",
    _parse_path,
    "no dump",
)
_ALWAYS_COMPILE = _flag("TILEWRIGHT_ALWAYS_COMPILE", "Compile even where the cache has the kernel.")
_VERIFY_EACH = _flag("TILEWRIGHT_VERIFY_EACH", "Verify the IR after every pass.")
_TIME_PASSES = _flag("TILEWRIGHT_TIME_PASSES", "Print how long each pass took.")
_PRINT_REMARKS = _flag("TILEWRIGHT_PRINT_REMARKS", "Print why a faster path was not taken.")
_PRINT_AUTOTUNING = _flag("TILEWRIGHT_PRINT_AUTOTUNING", "Print each tuning run and its winner.")
_FRONT_END_DEBUGGING = _flag(
    "TILEWRIGHT_FRONT_END_DEBUGGING", "Keep the compiler's own frames in the traceback of an error."
)

_ALLOW_NON_CONSTEXPR_GLOBALS = _flag(
    "TILEWRIGHT_ALLOW_NON_CONSTEXPR_GLOBALS",
    "Take plain numbers and strings that a kernel reads from globals as constants.",
)

VARIABLES: tuple[Variable[object], ...] = (
    _CACHE_DIR,
    _CACHE_SIZE,
    _DISABLE_CACHE,
    _NUM_THREADS,
    _TARGET,
    _PTXAS,
    _CHECKED,
    _DEBUG,
    _INTERPRET,
    _SIMULATE,
    _DUMP_IR,
    _ALWAYS_COMPILE,
    _VERIFY_EACH,
    _TIME_PASSES,
    _PRINT_REMARKS,
    _PRINT_AUTOTUNING,
    _FRONT_END_DEBUGGING,
    _ALLOW_NON_CONSTEXPR_GLOBALS,
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


@dataclass(frozen=True)
class RuntimeOptions:
    """Where and how compiled kernels run; not hashed.

    `cache_dir` is None where the cache is switched off or the user has no home directory.
    `num_threads` None leaves the count to the machine. `target` is `auto`, `cpu` or `nvidia`;
    `ptxas` None leaves the assembler to the search for one. `checked` and `debug` are the
    defaults of the compile options of the same name.
    """

    cache_dir: Path | None
    cache_size_bytes: int
    num_threads: int | None
    target: str
    ptxas: Path | None
    checked: bool
    debug: bool


@dataclass(frozen=True)
class DebugOptions:
    """What the compiler shows and checks while it works; changes no code and is not hashed."""

    interpret: bool
    simulate: str
    dump_ir: Path | None
    always_compile: bool
    verify_each: bool
    time_passes: bool
    print_remarks: bool
    print_autotuning: bool
    front_end_debugging: bool
    allow_non_constexpr_globals: bool


def runtime_options() -> RuntimeOptions:
    """The runtime options of this moment. Raises: `InvalidVariable`."""
    return RuntimeOptions(
        cache_dir=None if _DISABLE_CACHE.read() else _CACHE_DIR.read() or default_cache_dir(),
        cache_size_bytes=_CACHE_SIZE.read(),
        num_threads=_NUM_THREADS.read(),
        target=_TARGET.read(),
        ptxas=_PTXAS.read(),
        checked=_CHECKED.read(),
        debug=_DEBUG.read(),
    )


def debug_options() -> DebugOptions:
    """The debug options of this moment. Raises: `InvalidVariable`."""
    return DebugOptions(
        interpret=_INTERPRET.read(),
        simulate=_SIMULATE.read(),
        dump_ir=_DUMP_IR.read(),
        always_compile=_ALWAYS_COMPILE.read(),
        verify_each=_VERIFY_EACH.read(),
        time_passes=_TIME_PASSES.read(),
        print_remarks=_PRINT_REMARKS.read(),
        print_autotuning=_PRINT_AUTOTUNING.read(),
        front_end_debugging=_FRONT_END_DEBUGGING.read(),
        allow_non_constexpr_globals=_ALLOW_NON_CONSTEXPR_GLOBALS.read(),
    )


def default_cache_dir() -> Path | None:
    """The user's cache directory of this package, or None where the user has no home."""
    if not sys.platform.startswith("linux"):
        from platformdirs import user_cache_path  # loads 20 modules: 10 to 25 ms

        return user_cache_path("tilewright", appauthor=False)
    # The same answer as platformdirs gives on Linux (XDG base directories), which a test checks.
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return _path(base, "tilewright") if os.path.isabs(base) else None


def cuda_home() -> Path | None:
    """The CUDA toolkit that the environment names, by the variables that NVIDIA's tools read."""
    text = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    return _path(text) if text else None


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
