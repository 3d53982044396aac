"""Rule tables: one function per op class, a second registration is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from tilewright.support.errors import DuplicateRegistration
from tilewright.support.source import definition_span

Rule = TypeVar("Rule", bound=Callable[..., object])
AnyRule = TypeVar("AnyRule", bound=Callable[..., object])


class RuleTable(Generic[Rule]):
    """A mapping from a class to its rule, with optional fallback to a parent table."""

    def __init__(self, name: str, parent: RuleTable[Rule] | None = None) -> None:
        self.name = name
        self._parent = parent
        self._rules: dict[type, Rule] = {}

    def register(self, *classes: type) -> Callable[[AnyRule], AnyRule]:
        """Decorate a function as the rule of `classes`; it may name its class more narrowly.

        Raises: DuplicateRegistration for a class that has a rule in this table.
        """

        def add(rule: AnyRule) -> AnyRule:
            for cls in classes:
                if cls in self._rules:
                    raise self._second_rule(cls, rule)
                # The table hands a rule only instances of the classes it was registered for.
                self._rules[cls] = cast("Rule", rule)
            return rule

        return add

    def _second_rule(self, cls: type, rule: object) -> DuplicateRegistration:
        first = definition_span(self._rules[cls])
        return DuplicateRegistration(
            f"{cls.__name__} has a rule in the table `{self.name}` already",
            types={} if first is None else {"first": first.position()},
            span=definition_span(rule),
        )

    def find(self, cls: type) -> Rule | None:
        """The rule for `cls`, or None."""
        rule = self._rules.get(cls)
        if rule is None and self._parent is not None:
            return self._parent.find(cls)
        return rule

    def classes(self) -> tuple[type, ...]:
        """Every class with a rule here or in a parent, own rules first."""
        inherited = () if self._parent is None else self._parent.classes()
        return (*self._rules, *(cls for cls in inherited if cls not in self._rules))
