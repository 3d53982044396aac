"""Options: what the user can choose.

Three objects, by what they may change. `CompileOptions` changes the generated code and is
hashed into every cache key. `DebugOptions` only shows or checks what the compiler does.
`RuntimeOptions` says where and how compiled kernels run. The last two come from environment
variables, which are read live.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, SupportsIndex

from tilewright.support import environment as variables
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import CompileError, InvalidOption

if TYPE_CHECKING:
    from pathlib import Path

COUNTS_CYCLES: ContextVar[bool] = ContextVar("counts_cycles", default=False)
"""The `count_cycles` of launches that do not say it."""
OptionValue = int | str | tuple[int, ...] | None
LOOP_SCHEDULES = ("FA_firstDot", "FA_secondDot", "straight")
"""The orders of the two products of a loop; the first two are published names."""
INPUT_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
"""How float32 operands enter a product; `inputPrecision` of a `tt.dot` is an index here."""
DESCRIPTOR_MODES = ("auto", "pointers")
# What options are of; other integers, NumPy's say, are taken by their value.
_PLAIN_TYPES = frozenset((int, bool, str, tuple, type(None)))
_GROUP_WARPS = {0: 1, 1: 4, 2: 8, 3: 8}
"""The warps of a program in place of groups of 4, a power of two."""
# Measured on an H200, 2026-11-22: products of plain pointers are fastest with 4 stages (see
# docs/internals/pipelining.md).
_PLAIN_STAGES = 4
BULK_ACCESS_MODES = ("auto", "loads", "never", "always")


class DefaultStages(int):
    """The `num_stages` of a configuration that does not say it: a number for who reads it.

    Estimates and pruning compute with it; a launch leaves the choice to the compiler. It compares
    as the number, so what is said is told by the type.
    """


class UnknownOption(CompileError):
    """A launch or a configuration names a compile option that does not exist."""


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_power_of_two(value: object) -> bool:
    return type(value) is int and value >= 1 and value & (value - 1) == 0


def _is_register_cap(value: object) -> bool:
    return value is None or (type(value) is int and 1 <= value <= 255)


def _is_group_count(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value <= 3)


def _is_buffer_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= 64


def _is_role_registers(value: object) -> bool:
    return type(value) is int and (value == 0 or (24 <= value <= 248 and value % 8 == 0))


def _is_number_of_seconds(value: object) -> bool:
    return type(value) is int and 0 <= value <= 3600


def _is_seed(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


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


def _is_loop_schedule(value: object) -> bool:
    return value is None or value in LOOP_SCHEDULES


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_optional_flag(value: object) -> bool:
    return value is None or type(value) is bool


def _is_input_precision(value: object) -> bool:
    return value is None or value in INPUT_PRECISIONS


def _is_descriptor_mode(value: object) -> bool:
    return value in DESCRIPTOR_MODES


def _is_bulk_access_mode(value: object) -> bool:
    return value in BULK_ACCESS_MODES


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
    "bulk_access": (_is_bulk_access_mode, "'auto', 'loads', 'never' or 'always'"),
    "may_overlap": (_is_flag, "True or False"),
    "plan": (_is_text, "None or lines such as `load#0 copy registers`, as a str"),
    "num_consumer_groups": (_is_group_count, "None or an int from 0 to 3"),
    "num_buffers_warp_spec": (_is_buffer_count, "an int from 0 to 64"),
    "reg_dec_producer": (_is_role_registers, "0 or a multiple of 8 from 24 to 248"),
    "reg_inc_consumer": (_is_role_registers, "0 or a multiple of 8 from 24 to 248"),
    "loop_schedule": (_is_loop_schedule, "None or one of " + ", ".join(map(repr, LOOP_SCHEDULES))),
    "schedule": (_is_text, "None or the text of a schedule, as a str"),
    "deadlock_seconds": (_is_number_of_seconds, "an int from 0 to 3600"),
    "jitter": (_is_seed, "an int from 0 to 2147483647"),
    "count_cycles": (_is_flag, "True or False"),
}


@dataclass(frozen=True)
class CompileOptions:
    """The options that change the generated code; hashed into the cache key.

    `num_stages` None leaves it to the compiler how far loads run ahead of their loops, and so does
    a `DefaultStages`; 1 has none do so, more is the number of tiles under way. `maxnreg` None
    leaves the register count to the assembler. `cluster_dims` None makes clusters of `num_ctas`
    programs along the first axis of the grid. `launch_cooperative_grid` starts all programs of a
    grid together, `launch_pdl` before the launch ahead of it has ended.
    `debug` compiles `device_assert`; `sanitize_overflow` reports
    sums, differences and products of integers that do not fit their type (None: with `debug`);
    `checked` reports out-of-bounds access, int32 offset overflow and integer division by zero, and
    compiles `device_assert`.
    `default_dot_input_precision` None leaves the precision of an f32 `dot` to the target.
    `descriptors` "pointers" makes loads and stores through tensor descriptors plain ones, where
    "auto" leaves them to copy engines as far as the machine has them. `bulk_access` "auto" has
    copy engines also make loads of plain pointers that feed pipelined products or roles, where
    launches allow it, and the stores behind those; "loads" leaves the stores to threads, "always"
    has all loads that it could, and "never" none. `may_overlap` has no load run ahead of a store
    through another argument; without it they do where launches allow it.
    `plan` takes decisions from the compiler, a line for each (`schedule/plan/given.py`).
    `num_consumer_groups` makes
    roles of a program on a GPU: one that loads, and so many groups of 4 warps that share the rows
    of its products; 0 makes none but those that loops ask for, None those of attention and
    of large products, too, where they are faster. `num_buffers_warp_spec` is how many tiles of a
    loop are under way then, 0 as many as fit; `reg_dec_producer` and `reg_inc_consumer` are the
    registers of a thread that loads and of one that multiplies, 0 what suits the number of groups.
    `loop_schedule` is the order of the two products of a loop in roles: "FA_secondDot" has the
    second one run beside the rest of the next iteration, "FA_firstDot" the next first one beside
    the rest, "straight" neither; None leaves it to the compiler. `schedule` is the text of a
    schedule on a GPU, which takes the place of these and of `num_stages`. `deadlock_seconds`
    bounds each wait for a slot of a ring or a copy: a program that waits longer says what for and
    stops; 0 is no bound. `jitter` is a seed for pauses of all lengths before what roles do with
    rings and turns; 0 is none. `count_cycles` has a kernel on a CPU count the cycles of each nest
    and product, for `explain --measure`.

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
    bulk_access: str = "auto"
    may_overlap: bool = False
    plan: str | None = None
    num_consumer_groups: int | None = None
    num_buffers_warp_spec: int = 0
    reg_dec_producer: int = 0
    reg_inc_consumer: int = 0
    loop_schedule: str | None = None
    schedule: str | None = None
    deadlock_seconds: int = 0
    jitter: int = 0
    count_cycles: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.num_stages, DefaultStages):
            object.__setattr__(self, "num_stages", None)
        if isinstance(self.cluster_dims, list):
            object.__setattr__(self, "cluster_dims", tuple(self.cluster_dims))
        for name, (is_valid, domain) in _DOMAINS.items():
            value = getattr(self, name)
            if type(value) not in _PLAIN_TYPES and isinstance(value, SupportsIndex):
                value = operator.index(value)
                object.__setattr__(self, name, value)
            if not is_valid(value):
                raise InvalidOption(
                    f"option `{name}` is {value!r}",
                    argument=name,
                    hint=f"pass {domain}",
                    known_as=f"{name} must be a power of 2" if is_valid is _is_power_of_two else "",
                )

    def replaced(self, changes: Mapping[str, object]) -> CompileOptions:
        """These options with `changes` applied by name.

        Raises: `UnknownOption` for a name that is no option, `InvalidOption` for a bad value.
        """
        for name in changes:
            _require_option(name)
        return replace(self, **changes)

    def with_plain_stores(self) -> CompileOptions | None:
        """The options of a kernel for launches whose stores alone copy engines do not make.

        None where the author says how it runs, or leaves them fewer accesses.
        """
        is_open = self.schedule is None and self.plan is None and self.bulk_access == "auto"
        return replace(self, bulk_access="loads") if is_open else None

    def without_guards(self) -> CompileOptions:
        """The options of a kernel for launches that one with these makes too much of.

        It makes its loads by pointers, so there are no roles; its loads still run ahead, but for
        those of loops that store through other arguments.
        """
        plain = replace(self, bulk_access="never", may_overlap=True)
        if not self.num_consumer_groups and self.schedule is None:
            return plain
        return plain.without_roles()

    def without_roles(self) -> CompileOptions:
        """The options of the same kernel as one program, with the warps that its roles have."""
        return replace(
            self,
            num_consumer_groups=0,
            schedule=None,
            loop_schedule=None,
            num_warps=max(self.num_warps, _GROUP_WARPS[self.num_consumer_groups or 0]),
            num_stages=self.num_stages or _PLAIN_STAGES,
        )

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
class RuntimeOptions:
    """Where and how compiled kernels run; not hashed.

    `cache_dir` is None where the cache is switched off or the user has no home directory.
    `num_threads` None leaves the count to the machine. `target` is `auto`, `cpu`, `nvidia` or
    `mlir`; `ptxas` None leaves the assembler to the search for one, and so does `mlir_opt` for
    MLIR. `mlir_schedule` is `none` or `cpu`. `checked`, `debug`, `deadlock_seconds` and `jitter`
    are the defaults of the compile options of the same name, and so is `count_cycles`, which is
    no variable of the environment but `COUNTS_CYCLES`. `reports_faults`: a kernel that faults on
    a CPU is named before it ends the process.
    """

    cache_dir: Path | None
    cache_size_bytes: int
    num_threads: int | None
    target: str
    ptxas: Path | None
    mlir_opt: Path | None
    mlir_schedule: str
    checked: bool
    debug: bool
    deadlock_seconds: int = 0
    jitter: int = 0
    count_cycles: bool = False
    reports_faults: bool = True


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
        cache_dir=None if variables.DISABLE_CACHE.read() else _cache_dir(),
        cache_size_bytes=variables.CACHE_SIZE.read(),
        num_threads=variables.NUM_THREADS.read(),
        target=variables.TARGET.read(),
        ptxas=variables.PTXAS.read(),
        mlir_opt=variables.MLIR_OPT.read(),
        mlir_schedule=variables.MLIR_SCHEDULE.read(),
        checked=variables.CHECKED.read(),
        debug=variables.DEBUG.read(),
        deadlock_seconds=variables.DEADLOCK_SECONDS.read(),
        jitter=variables.JITTER.read(),
        count_cycles=COUNTS_CYCLES.get(),
        reports_faults=not variables.DISABLE_FAULT_REPORTS.read(),
    )


def _cache_dir() -> Path | None:
    return variables.CACHE_DIR.read() or variables.default_cache_dir()


def debug_options() -> DebugOptions:
    """The debug options of this moment. Raises: `InvalidVariable`."""
    return DebugOptions(
        interpret=variables.INTERPRET.read(),
        simulate=variables.SIMULATE.read(),
        dump_ir=variables.DUMP_IR.read(),
        always_compile=variables.ALWAYS_COMPILE.read(),
        verify_each=variables.VERIFY_EACH.read(),
        time_passes=variables.TIME_PASSES.read(),
        print_remarks=variables.PRINT_REMARKS.read(),
        print_autotuning=variables.PRINT_AUTOTUNING.read(),
        front_end_debugging=variables.FRONT_END_DEBUGGING.read(),
        allow_non_constexpr_globals=variables.ALLOW_NON_CONSTEXPR_GLOBALS.read(),
    )
