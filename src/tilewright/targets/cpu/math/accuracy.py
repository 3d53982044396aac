"""The error bound of each math function, in units in the last place of the exact result."""

from __future__ import annotations

ULP_BOUND: dict[tuple[str, str], float] = {}
