"""The layouts of an op's tiles as an attribute of it, on T0.

    %s = "tt.reduce"(%x) … {tw.layout = #tw.layout<"register(1 2) lane(4 …) … -> register() …">}

Layouts of the operands, then of the results, `|` between them and `_` for what is no tile. An
author may give one layout alone: that of the tiles that the op has its own layout for, from which
its rule makes the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.irdl import irdl_attr_definition

from tilewright.ir.annotations import PlanAttr
from tilewright.layout.linear import LinearLayout
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import LayoutError

if TYPE_CHECKING:
    from typing import Self

_NONE, _BESIDE, _THEN = "_", " | ", " -> "
_Layouts = tuple[LinearLayout | None, ...]


@dataclass(frozen=True)
class LayoutPlan:
    """The layouts of the operands and of the results; or `operands` alone, of one layout.

    `results` None says that the one layout is what the others follow from.
    """

    WHAT: ClassVar[str] = "layouts"
    EXAMPLE: ClassVar[str] = "register(1 2) lane(4 8 16 32 64) warp(128 256) atom(512)"
    DECIDED_BY: ClassVar[str] = "decide-layouts"

    operands: _Layouts
    results: _Layouts | None = None
    reason: str = ""

    @property
    def is_one(self) -> bool:
        """Whether it is one layout, from which the others follow."""
        return self.results is None

    @classmethod
    def read(cls, text: str, reason: str = "") -> Self | None:
        """The layouts that a text says; None where it says none."""
        sides = text.split(_THEN)
        try:
            operands, *rest = (_parsed(side) for side in sides)
        except (LayoutError, ValueError):
            return None
        if len(rest) > 1 or (not rest and (len(operands) != 1 or operands[0] is None)):
            return None
        return cls(operands, rest[0] if rest else None, reason)

    def __str__(self) -> str:
        sides = (self.operands,) if self.results is None else (self.operands, self.results)
        return _THEN.join(map(_text, sides))


@irdl_attr_definition
class LayoutPlanAttr(PlanAttr[LayoutPlan]):
    """The layouts of an op's tiles, as `#tw.layout<"… -> …">`."""

    name = "tw.layout"
    plan = LayoutPlan


def _parsed(side: str) -> _Layouts:
    """The layouts on one side of the arrow."""
    entries = [entry.strip() for entry in side.split(_BESIDE)] if side.strip() else []
    return tuple(None if entry == _NONE else LinearLayout.parse(entry) for entry in entries)


def _text(layouts: _Layouts) -> str:
    return _BESIDE.join(_NONE if layout is None else layout.text() for layout in layouts)
