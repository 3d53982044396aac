"""Memory of the process that is no argument: where a real address is mapped, if anywhere."""

from __future__ import annotations

from pathlib import Path

from tilewright.support.dataclass import dataclass

_MAPS = Path("/proc/self/maps")


@dataclass(frozen=True)
class Mapping:
    """A mapped stretch of real addresses [low, high)."""

    low: int
    high: int
    writable: bool


def mapping_of(address: int) -> Mapping | None:
    """The readable mapping that holds `address`; None without one or where none is known."""
    if not _MAPS.exists():  # only Linux tells
        return None
    for line in _MAPS.read_text().splitlines():
        extent, permissions, *_ = line.split(maxsplit=2)
        low, high = (int(part, 16) for part in extent.split("-"))
        if low <= address < high:
            return Mapping(low, high, "w" in permissions) if "r" in permissions else None
    return None
