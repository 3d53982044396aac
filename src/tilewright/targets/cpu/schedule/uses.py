"""Counts the steps of a block that evaluate each tile.

A step reaches the tiles that its own are made of, down to those that are materialised. Steps are
bits of a number, so that a walk from users to producers costs one operation an operand, where
listing what each step reaches costs the square of the block's length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from xdsl.ir import SSAValue

from tilewright.support.dataclass import dataclass


@dataclass
class Uses:
    """The steps that reach each value, as far as the walk from the block's end has come.

    A step is anything with an identity. *Semantics* `count(v)` = the steps that evaluate `v`,
    those that do so in a loop twice.
    """

    _bits: dict[object, int] = field(default_factory=dict)
    _repeated: int = 0
    _steps: dict[SSAValue, int] = field(default_factory=dict)
    _made_in: dict[SSAValue, int] = field(default_factory=dict)

    def add_step(self, step: object, *, is_repeated: bool = False) -> int:
        """The bit of a step, the same every time."""
        bit = self._bits.setdefault(step, 1 << len(self._bits))
        if is_repeated:
            self._repeated |= bit
        return bit

    def take(self, values: Iterable[SSAValue], steps: int) -> None:
        """Note that `steps` evaluate `values`."""
        for value in values:
            self._steps[value] = self._steps.get(value, 0) | steps

    def count(self, value: SSAValue) -> int:
        """How many steps evaluate a value; those after it have handed theirs on."""
        steps = self._steps.get(value, 0)
        return steps.bit_count() + (steps & self._repeated).bit_count()

    def materialize(self, value: SSAValue, step: object | None) -> None:
        """Let one step alone evaluate a value for all others: `step`, or one of its own."""
        self._made_in[value] = self.add_step(object() if step is None else step)

    def hand_on(self, value: SSAValue, sources: Iterable[SSAValue]) -> None:
        """Whoever evaluates a value evaluates what it is made of."""
        self.take(sources, self._made_in.get(value, self._steps.get(value, 0)))
