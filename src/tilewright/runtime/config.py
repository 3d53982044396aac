"""`Config`: one way to compile and launch a kernel, for the autotuner to try."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import SupportsIndex, cast

from tilewright.support.errors import InvalidOption
from tilewright.support.options import DefaultStages

PreHook = Callable[[dict[str, object]], object]


_DEFAULT_STAGES = DefaultStages(3)
"""Its value is by definition: what configurations in the field have where they say nothing."""

# Compile options that a Config names by fields of its own, with the value that passes nothing.
_OPTION_FIELDS: dict[str, object] = {
    "num_warps": 4,
    "num_stages": _DEFAULT_STAGES,
    "num_ctas": 1,
    "maxnreg": None,
    "num_consumer_groups": 0,
    "num_buffers_warp_spec": 0,
}
_ALWAYS_SET = ("num_warps", "num_stages", "num_ctas")
# Options of GPU compilers that written configurations carry; there is nothing here to set.
FOREIGN_OPTIONS = frozenset(
    (
        "waves_per_eu",
        "matrix_instr_nonkdim",
        "kpack",
        "schedule_hint",
        "ptx_version",
        "ir_override",
        "num_producer_groups",
    )
)


def _is_said(name: str, value: object) -> bool:
    """Whether a field was given a value that the compiler has to hear of."""
    if name == "num_stages":
        return not isinstance(value, DefaultStages)
    return value != _OPTION_FIELDS[name]


def require_function(value: object, option: str, argument: str) -> None:
    """Refuse what is no function where one is due, or None. Raises: InvalidOption."""
    if value is not None and not callable(value):
        raise InvalidOption(
            f"{option}: `{argument}` is an object of type {type(value).__name__}",
            argument=argument,
            hint="pass a function, or leave it out",
        )


def _require_count(value: object, argument: str) -> None:
    """Refuse what is no number of warps, stages or the like, or None. Raises: InvalidOption."""
    if value is not None and not isinstance(value, SupportsIndex):
        raise InvalidOption(
            f"Config(): `{argument}` is {value!r}", argument=argument, hint="pass an int"
        )


def require_names(value: object, option: str, argument: str) -> None:
    """Refuse what is no list of names, or None. Raises: InvalidOption."""
    if value is None:
        return
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise _no_names("is", value, option, argument)
    for item in cast("Iterable[object]", value):
        if not isinstance(item, str):
            raise _no_names("holds", item, option, argument)


def _no_names(verb: str, odd: object, option: str, argument: str) -> InvalidOption:
    return InvalidOption(
        f"{option}: `{argument}` {verb} an object of type {type(odd).__name__}",
        argument=argument,
        hint='pass a list of the names of parameters, such as ["n"]',
    )


def require_dictionary(value: object, option: str, argument: str, hint: str) -> None:
    """Refuse what is no dictionary of names. Raises: InvalidOption."""
    is_named = isinstance(value, Mapping) and all(
        isinstance(name, str) for name in cast("Mapping[object, object]", value)
    )
    if not is_named:
        raise InvalidOption(
            f"{option}: `{argument}` is no dictionary of names, but {value!r}",
            argument=argument,
            hint=hint,
        )


class TuningWarning(UserWarning):
    """Tuning leaves a trace in the arguments, or a configuration is no program."""


class Config:
    """Values for some parameters of a kernel, and compile options that go with them.

    `pre_hook` is called with all arguments by name before each launch with this
    configuration. Fields that mean nothing to a target are accepted and ignored there.
    `num_stages` is 3 where it is not said; only a said one, 3 too, reaches the launch.
    Clients derive classes from it and set attributes, so it is an ordinary class.
    """

    def __init__(
        self,
        kwargs: Mapping[str, object],
        num_warps: int = 4,
        num_stages: int = _DEFAULT_STAGES,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: PreHook | None = None,
        ir_override: str | None = None,
        num_consumer_groups: int = 0,
        num_buffers_warp_spec: int = 0,
    ) -> None:
        require_dictionary(
            kwargs,
            "Config()",
            "kwargs",
            'pass a dictionary of parameters and their values, such as {"BLOCK": 64}',
        )
        require_function(pre_hook, "Config()", "pre_hook")
        counts = (num_warps, num_stages, num_ctas, maxnreg)
        counts += (num_consumer_groups, num_buffers_warp_spec)
        for argument, value in zip(_OPTION_FIELDS, counts, strict=True):
            _require_count(value, argument)
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override
        self.num_consumer_groups = num_consumer_groups
        self.num_buffers_warp_spec = num_buffers_warp_spec

    def _key(self) -> tuple[object, ...]:
        values = tuple((name, repr(value)) for name, value in sorted(self.kwargs.items()))
        options = tuple(getattr(self, name) for name in _OPTION_FIELDS)
        return (values, options, tuple(self.options()), self.ir_override)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self._key() == other._key() and self.pre_hook is other.pre_hook

    def __hash__(self) -> int:
        return hash((self._key(), self.pre_hook))

    def __repr__(self) -> str:
        return f"Config({self})"

    def all_kwargs(self) -> dict[str, object]:
        """Every parameter and option by name, for estimates and hooks; unset ones left out."""
        options: dict[str, object] = {n: getattr(self, n) for n in _ALWAYS_SET}
        rest = {name: value for name, value in self.options().items() if name not in _ALWAYS_SET}
        if self.ir_override is not None:
            rest["ir_override"] = self.ir_override
        return {**self.kwargs, **options, **rest}

    def launch_kwargs(self) -> dict[str, object]:
        """The keywords of a launch: parameters, then every option that is not at its default."""
        return {**self.kwargs, **self.options()}

    def options(self) -> dict[str, object]:
        """The compile options that are not at their default, by name."""
        values = {name: getattr(self, name) for name in _OPTION_FIELDS}
        return {n: v for n, v in values.items() if _is_said(n, v)}

    def __str__(self) -> str:
        values = {**self.kwargs, **{name: getattr(self, name) for name in _OPTION_FIELDS}}
        if self.ir_override is not None:
            values["ir_override"] = self.ir_override
        return ", ".join(f"{name}: {value}" for name, value in values.items())

    def short(self) -> str:
        """The parameters, and those options that are not at their default."""
        values = self.launch_kwargs()
        return ", ".join(f"{name}={value}" for name, value in values.items()) or "defaults"


def configurations(given: object) -> list[Config]:
    """The configurations that `autotune` was given. Raises: InvalidOption."""
    hint = 'pass a list of Config, such as [Config({"BLOCK": 64})]'
    if not isinstance(given, Iterable):
        what = f"is an object of type {type(given).__name__}"
        raise InvalidOption(f"autotune(): `configs` {what}", argument="configs", hint=hint)
    configs: list[Config] = []
    for config in cast("Iterable[object]", given):
        if not isinstance(config, Config):
            what = f"holds an object of type {type(config).__name__}"
            raise InvalidOption(f"autotune(): `configs` {what}", argument="configs", hint=hint)
        configs.append(config)
    return configs
