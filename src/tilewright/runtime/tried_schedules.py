"""Configurations with each schedule that their kernel allows."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tilewright.runtime.config import Config
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import TilewrightError

_SAID = ("num_stages", "num_consumer_groups", "schedule", "plan", "loop_schedule")
"""Who says one of these has a schedule already."""


class AskSchedules(Protocol):
    """The options of each schedule for a call with these keywords, in a fixed order."""

    def __call__(self, config: Config) -> Sequence[Mapping[str, object]]:
        """Ask for those of one configuration."""
        ...


@dataclass(frozen=True)
class TriedConfig:
    """A configuration to try: one of the author's, or one with a schedule that was added."""

    config: Config
    is_added: bool = False


def with_schedules(configs: Iterable[Config], ask: AskSchedules) -> list[TriedConfig]:
    """Each configuration as it is, then with each schedule; those with one of their own once."""
    found: list[TriedConfig] = []
    for config in configs:
        found.append(TriedConfig(config))
        if not any(name in config.launch_kwargs() for name in _SAID):
            added = (_with_options(config, options) for options in _asked(config, ask))
            found += [TriedConfig(scheduled, is_added=True) for scheduled in added]
    return found


def _asked(config: Config, ask: AskSchedules) -> Sequence[Mapping[str, object]]:
    try:
        return ask(config)
    except TilewrightError:
        return ()  # compiling the configuration as it is says why


def _with_options(config: Config, options: Mapping[str, object]) -> Config:
    """A configuration of the same class with more options."""
    scheduled = copy.copy(config)
    scheduled.kwargs = {**config.kwargs, **options}
    return scheduled
