"""How each family of ops is evaluated; `TILE_RULES` has a rule for every op of T0."""

from tilewright.interp.rules import (
    atomics,
    casts,
    control_flow,
    debug,
    descriptors,
    memory,
    poison,
    pure,
    reduction,
)
from tilewright.interp.rules.tables import TILE_RULES

__all__ = [
    "TILE_RULES",
    "atomics",
    "casts",
    "control_flow",
    "debug",
    "descriptors",
    "memory",
    "poison",
    "pure",
    "reduction",
]
