"""Pruning: which configurations are worth timing, by rules that the author of a kernel gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from tilewright.runtime.config import Config
from tilewright.support.errors import InvalidOption


class Pruning(TypedDict, total=False):
    """How configurations are left out before any is timed.

    `early_config_prune(configs, named_args, **kwargs)` returns those to keep: `named_args` are the
    arguments given by place, `kwargs` those given by name. `perf_model` estimates the time of one
    from all arguments as keywords, and the `top_k` fastest by its estimate stay: a count, or a
    share (up to 1.0) of those that are left. None is as if nothing was said.
    """

    early_config_prune: Callable[..., Sequence[Config]] | None
    perf_model: Callable[..., float] | None
    top_k: int | float | None


def prune(
    name: str,
    configs: Sequence[Config],
    pruning: Pruning,
    positional: Mapping[str, object],
    kwargs: Mapping[str, object],
) -> list[Config]:
    """The configurations that are left for a call of the kernel `name`, in order.

    `positional` are the arguments that the call gives by place, by their names; `kwargs` those
    that it names.

    Raises: `InvalidOption` when none is left, or for another `top_k`.
    """
    left = list(configs)
    early = pruning.get("early_config_prune")
    if early is not None:
        left = list(early(left, dict(positional), **kwargs))
        if not left:
            raise InvalidOption(
                f"autotune(): early_config_prune of {name}() left no configuration",
                hint="it must return at least one of the configurations",
            )
    model = pruning.get("perf_model")
    if model is None:
        return left
    top_k = pruning.get("top_k")
    count = len(left) if top_k is None else _count(top_k, len(left))
    if count >= len(left):
        return left
    estimates = [float(model(**{**positional, **kwargs, **config.all_kwargs()})) for config in left]
    fastest = sorted(range(len(left)), key=lambda i: estimates[i])[:count]
    return [left[i] for i in sorted(fastest)]


def _count(top_k: int | float, total: int) -> int:
    """How many configurations `top_k` stands for, of `total`; at least one."""
    if isinstance(top_k, float) and 0 < top_k <= 1.0:
        return max(1, int(total * top_k))
    if not float(top_k).is_integer() or top_k < 1:
        raise InvalidOption(
            f"autotune(): top_k is {top_k!r}", hint="pass a count, or a share of at most 1.0"
        )
    return int(top_k)
