"""What a tuning found, as JSON in the disk cache: a row of times for each configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.runtime.cache import JsonValue, open_default
from tilewright.runtime.config import Config
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.fingerprint import (
    compiler_fingerprint,
    digest,
    host_cpu_fingerprint,
    usable_cpu_count,
)
from tilewright.runtime.tuning import LOST, Outcome, Trial
from tilewright.support.options import runtime_options

_FORMAT = "tilewright-tuning-2"


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


def record_key(
    kernel: str, key: tuple[object, ...], configs: Sequence[Config], is_on_gpu: bool
) -> str:
    """The cache key of a tuning: kernel, key, configurations, compiler and machine.

    `kernel` is the identity of its sources.
    """
    threads = runtime_options().num_threads or usable_cpu_count()
    where = [compiler_fingerprint(), host_cpu_fingerprint(), str(threads)]
    if is_on_gpu:
        where.append(repr(sorted(load_driver("nvidia").machine().to_features().items())))
    # A count that is said and one that is not look the same in the text of a configuration.
    listed = [f"{config} {list(config.options())} {config.ir_override}" for config in configs]
    return digest(_FORMAT, *where, kernel, repr(key), *listed)
