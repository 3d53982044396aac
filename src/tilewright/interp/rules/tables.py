"""The tables that the modules beside this one fill."""

from __future__ import annotations

from tilewright.interp.code import Rules

TILE_RULES = Rules("tile")
