"""Types as signatures write them: `i32`, `*fp32`, `*kbf16`, `tensordesc<fp32[64,64]>`."""

from __future__ import annotations

import re
from functools import lru_cache

from tilewright.language.core import DTYPE_BY_SHORT_NAME, dtype, pointer_type
from tilewright.support.dataclass import dataclass

_DESCRIPTOR = re.compile(r"tensordesc<(\w+)\[(\d+(?:,\d+)*)\](?:,(\w+))?>")


@dataclass(frozen=True)
class DescriptorText:
    """The parts of a tensor descriptor's type."""

    element: dtype
    block_shape: tuple[int, ...]
    padding: str = "zero"


@lru_cache(maxsize=1024)
def parse_scalar(text: str) -> dtype | None:
    """The dtype or pointer type that `text` names, or None."""
    if text.startswith("*k") and text[2:] in DTYPE_BY_SHORT_NAME:
        return pointer_type(DTYPE_BY_SHORT_NAME[text[2:]], const=True)
    if text.startswith("*"):
        element = parse_scalar(text[1:])
        return None if element is None else pointer_type(element)
    return DTYPE_BY_SHORT_NAME.get(text)


@lru_cache(maxsize=256)
def parse_descriptor(text: str) -> DescriptorText | None:
    """The parts of `tensordesc<fp32[64,64]>` or `tensordesc<fp32[64,64],nan>`, or None."""
    match = _DESCRIPTOR.fullmatch(text)
    element = None if match is None else parse_scalar(match.group(1))
    if match is None or element is None:
        return None
    shape = tuple(int(extent) for extent in match.group(2).split(","))
    return DescriptorText(element, shape, match.group(3) or "zero")
