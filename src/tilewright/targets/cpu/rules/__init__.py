"""The CPU target's lowering rules: C2 ops, and overrides of the defaults."""

from __future__ import annotations

from tilewright.codegen.context import Rule
from tilewright.codegen.rules import DEFAULT_RULES, arithmetic, casts, control
from tilewright.support.rules import RuleTable

# Imported for the rules they register.
REGISTERED = (arithmetic, casts, control)

CPU_RULES: RuleTable[Rule] = RuleTable("cpu", DEFAULT_RULES)
