"""Default per-thread rules, one module per op family; a target overrides what it does better."""

from __future__ import annotations

from tilewright.codegen.context import Rule
from tilewright.support.rules import RuleTable

SIMT_RULES: RuleTable[Rule] = RuleTable("threads")
