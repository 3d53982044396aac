"""Whether an object that is a constant of a kernel may hold something else at the next launch."""

from __future__ import annotations

import dataclasses
from functools import partial

from tilewright.language.core import constexpr


def may_change(value: object) -> bool:
    """Whether the same object may stand for another constant later.

    What is only rebound, as numbers and strings, and what a kernel knows by its source, as
    functions and classes, does not.

    *Example*

    >>> may_change((1, "a")), may_change((1, ["a"]))
    (False, True)
    """
    if isinstance(value, constexpr):
        return True
    if isinstance(value, tuple | frozenset):
        return any(map(may_change, value))
    if isinstance(value, partial):
        return any(map(may_change, (value.func, *value.args, *value.keywords.values())))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _may_fields_change(value)
    try:
        hash(value)
    except TypeError:
        return True
    return False


def _may_fields_change(value: object) -> bool:
    """Whether fields of a dataclass object are assigned, or hold what changes."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    if not getattr(parameters, "frozen", False):
        return True
    assert dataclasses.is_dataclass(value)
    return any(may_change(getattr(value, f.name, None)) for f in dataclasses.fields(value))
