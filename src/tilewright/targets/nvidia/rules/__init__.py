"""Per-thread rules of the NVIDIA target, over the default ones."""

from __future__ import annotations

from tilewright.codegen.context import Rule
from tilewright.codegen.rules import arithmetic, casts
from tilewright.codegen.simt.rules import (
    SIMT_RULES,
    affine,
    atomics,
    conversion,
    float_casts,
    indexing,
    memory,
    rearrange,
    reduction,
    reports,
    roles,
    scan,
    sort,
    staging,
    structure,
)
from tilewright.support.rules import RuleTable

NVIDIA_RULES: RuleTable[Rule] = RuleTable("nvidia", SIMT_RULES)

# Imported for the rules that they register.
DEFAULT_RULE_MODULES = (
    affine,
    arithmetic,
    casts,
    atomics,
    conversion,
    float_casts,
    indexing,
    memory,
    sort,
    rearrange,
    reduction,
    reports,
    roles,
    scan,
    staging,
    structure,
)
