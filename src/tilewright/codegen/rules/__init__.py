"""Default lowering rules, one module per op family; a target overrides what it does better."""

from __future__ import annotations

from tilewright.codegen.context import Rule
from tilewright.support.rules import RuleTable

DEFAULT_RULES: RuleTable[Rule] = RuleTable("default")
