"""What a tuning found, as JSON in the disk cache: a row of times for each configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.runtime.cache import JsonValue, open_default
from tilewright.runtime.config import Config
from tilewright.runtime.tuning import LOST, Outcome, Trial


def to_record(outcome: Outcome) -> JsonValue:
    """The outcome as JSON: a row for each configuration, in order."""
    return [None if trial.failure else list(trial.times_ms) for trial in outcome.trials]


def read_record(key: str, configs: Sequence[Config]) -> Outcome | None:
    """The outcome that an earlier process kept, or None for anything that is not one."""
    rows = open_default().get_json(key)
    if not isinstance(rows, list) or len(rows) != len(configs):
        return None
    trials = [_trial(config, row) for config, row in zip(configs, rows, strict=True)]
    if any(trial is None for trial in trials) or all(t and t.failure for t in trials):
        return None
    return Outcome(tuple(cast("list[Trial]", trials)))


def _trial(config: Config, row: JsonValue) -> Trial | None:
    if row is None:
        return Trial(config, LOST, "failed in an earlier process")
    if not isinstance(row, list) or len(row) != 3:
        return None
    times = [value for value in row if type(value) is float and value >= 0]
    return Trial(config, (times[0], times[1], times[2])) if len(times) == 3 else None
