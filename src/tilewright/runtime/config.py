"""`Config`: one way to compile and launch a kernel, for the autotuner to try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from tilewright.support.dataclass import dataclass

NamedArguments = Mapping[str, object]
PreHook = Callable[[dict[str, object]], object]

# Compile options that a Config names by fields of its own, with the value that passes nothing.
_OPTION_FIELDS: dict[str, object] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
    "num_consumer_groups": 0,
    "num_buffers_warp_spec": 0,
}
# Options of GPU compilers that written configurations carry; there is nothing here to set.
FOREIGN_OPTIONS = frozenset(
    (
        "waves_per_eu",
        "matrix_instr_nonkdim",
        "kpack",
        "schedule_hint",
        "ptx_version",
        "ir_override",
        "num_consumer_groups",
        "num_buffers_warp_spec",
        "num_producer_groups",
        "reg_dec_producer",
        "reg_inc_consumer",
    )
)


@dataclass(frozen=True)
class Config:
    """Values for some parameters of a kernel, and compile options that go with them.

    `pre_hook` is called with all arguments by name before each launch with this
    configuration. Fields that mean nothing to a target are accepted and ignored there.
    """

    kwargs: Mapping[str, object]
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    pre_hook: PreHook | None = None
    ir_override: str | None = None
    num_consumer_groups: int = 0
    num_buffers_warp_spec: int = 0
    _key: tuple[object, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "kwargs", dict(self.kwargs))
        values = tuple((name, repr(value)) for name, value in sorted(self.kwargs.items()))
        options = tuple(getattr(self, name) for name in _OPTION_FIELDS)
        object.__setattr__(self, "_key", (values, options, self.ir_override))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self._key == other._key and self.pre_hook is other.pre_hook

    def __hash__(self) -> int:
        return hash((self._key, self.pre_hook))

    def all_kwargs(self) -> dict[str, object]:
        """The keywords of a launch: parameters, then every option that is not at its default."""
        return {**self.kwargs, **self.options()}

    def options(self) -> dict[str, object]:
        """The compile options that are not at their default, by name."""
        values = {name: getattr(self, name) for name in _OPTION_FIELDS}
        return {n: v for n, v in values.items() if v != _OPTION_FIELDS[n]}

    def __str__(self) -> str:
        values = {**self.kwargs, **{name: getattr(self, name) for name in _OPTION_FIELDS}}
        return ", ".join(f"{name}: {value}" for name, value in values.items())

    def short(self) -> str:
        """The parameters, and those options that are not at their default."""
        values = self.all_kwargs()
        return ", ".join(f"{name}={value}" for name, value in values.items()) or "defaults"
