"""No message to a user holds a layout as Python shows it: shapes and lines are what they know."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tilewright
from tilewright.layout.axis import spread_along
from tilewright.layout.build import blocked
from tilewright.layout.linear import LinearLayout
from tilewright.layout.parts import part_layout, part_registers
from tilewright.support.errors import LayoutError

SOURCES = Path(tilewright.__file__).parent
TILE = blocked((64, 64), (1, 1), (1, 32), (4, 1), (1, 0))
# Registers that move along both dims at once.
MIXED = LinearLayout((("register", ((1, 1),)), ("lane", ((0, 1),)), ("warp", ())), (2, 2))


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (lambda: spread_along(MIXED, 0), "tile of 2x2 differ along dim 0 and others at once"),
        (lambda: part_layout(TILE, (64, 16)), "parts of 64x16 of a tile of 64x64"),
        (lambda: part_registers(TILE, TILE, (0, 1)), "part of 64x64 from (0, 1) on"),
        (lambda: spread_along(MIXED, 1), "differ along dim 1 and others at once"),
    ],
)
def test_a_refusal_speaks_of_shapes(refused: object, said: str) -> None:
    assert callable(refused)
    with pytest.raises(LayoutError) as caught:
        refused()
    assert said in caught.value.summary
    assert "LinearLayout" not in str(caught.value)


def test_what_is_raised_of_tiles_formats_no_layout() -> None:
    shown = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path in sorted((SOURCES / "layout").glob("*.py"))
        # Maps between any spaces, and text that is read: no tile of a kernel comes there.
        if path.name not in ("map.py", "text.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        for value in ast.walk(node)
        if isinstance(value, ast.FormattedValue) and value.conversion == ord("r")
    ]
    assert shown == []
